package COM.claymoresystems.ptls;

import COM.claymoresystems.sslg.SSLPolicyInt;

/** Stand-in for PureTLS, which is in no registry: the library makes one at start; without TLS nothing need be kept. */
public class SSLContext {
    public void loadEAYKeyFile(String path, String passphrase) {
    }

    public void loadRootCertificates(String path) {
    }

    public void seedRNG(byte[] seed) {
    }

    public void setPolicy(SSLPolicyInt policy) {
    }
}
