package COM.claymoresystems.sslg;

/** Stand-in for PureTLS. */
public class SSLPolicyInt {
    public void acceptUnverifiableCertificates(boolean accept) {
    }

    public void requireClientAuth(boolean require) {
    }

    public void setCipherSuites(short[] suites) {
    }

    public static int getCipherSuiteNumber(String name) {
        return -1; // unknown
    }
}
