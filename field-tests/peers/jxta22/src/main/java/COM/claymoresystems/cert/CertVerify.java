package COM.claymoresystems.cert;

/** Stand-in for PureTLS. */
public class CertVerify {
    public static void main(String[] args) {
    }
}
