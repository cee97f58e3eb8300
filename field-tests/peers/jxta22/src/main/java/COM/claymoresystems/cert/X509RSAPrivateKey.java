package COM.claymoresystems.cert;

import java.security.PrivateKey;
import java.security.interfaces.RSAPrivateCrtKey;

/** Stand-in for PureTLS: wraps the key that the library hands to EAYEncryptedPrivateKey. */
public class X509RSAPrivateKey implements PrivateKey {
    private final RSAPrivateCrtKey key;

    public X509RSAPrivateKey(RSAPrivateCrtKey key) {
        this.key = key;
    }

    @Override
    public String getAlgorithm() {
        return key.getAlgorithm();
    }

    @Override
    public String getFormat() {
        return key.getFormat();
    }

    @Override
    public byte[] getEncoded() {
        return key.getEncoded();
    }
}
