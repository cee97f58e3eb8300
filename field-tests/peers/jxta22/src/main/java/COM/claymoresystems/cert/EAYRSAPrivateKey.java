package COM.claymoresystems.cert;

import java.math.BigInteger;
import java.security.PrivateKey;
import java.security.interfaces.RSAPrivateCrtKey;

/** Stand-in for PureTLS: the key as the library takes it apart again. */
public class EAYRSAPrivateKey implements PrivateKey {
    private final RSAPrivateCrtKey key;

    public EAYRSAPrivateKey(RSAPrivateCrtKey key) {
        this.key = key;
    }

    public BigInteger getP() {
        return key.getPrimeP();
    }

    public BigInteger getQ() {
        return key.getPrimeQ();
    }

    /** The private exponent. */
    public BigInteger getExponent() {
        return key.getPrivateExponent();
    }

    public BigInteger getModulus() {
        return key.getModulus();
    }

    public BigInteger getInverseOfQModP() {
        return key.getCrtCoefficient();
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
