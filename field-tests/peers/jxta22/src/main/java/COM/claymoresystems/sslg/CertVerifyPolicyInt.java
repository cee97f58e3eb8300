package COM.claymoresystems.sslg;

/** Stand-in for PureTLS. */
public class CertVerifyPolicyInt {
    public void checkDates(boolean check) {
    }

    public void requireBasicConstraints(boolean require) {
    }
}
