package jxta.security.impl.crypto;

import java.security.DigestException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import jxta.security.cipher.Cipher;
import jxta.security.cipher.Key;
import jxta.security.crypto.JxtaCrypto;
import jxta.security.exceptions.CryptoException;
import jxta.security.hash.Hash;
import jxta.security.impl.publickey.RSAKey;

/** Stand-in for the lost jxta.security: SHA-1 where the library wants 20 octets, and a cipher that copies unchanged. */
public class JxtaCryptoSuite implements JxtaCrypto {
    private static final byte SHA1_LENGTH = 20;

    public JxtaCryptoSuite(byte profile, RSAKey key, byte hash, byte mac) throws CryptoException {
    }

    @Override
    public Hash getJxtaHash(byte algorithm) {
        return new Sha1();
    }

    @Override
    public Hash getJxtaHash() {
        return new Sha1();
    }

    @Override
    public Cipher getJxtaCipher() {
        return new Copy();
    }

    private static final class Sha1 implements Hash {
        @Override
        public byte getDigestLength() {
            return SHA1_LENGTH;
        }

        @Override
        public int doFinal(byte[] in, int inOffset, int inLength, byte[] out, int outOffset) throws CryptoException {
            try {
                MessageDigest digest = MessageDigest.getInstance("SHA-1");
                digest.update(in, inOffset, inLength);
                return digest.digest(out, outOffset, SHA1_LENGTH);
            } catch (NoSuchAlgorithmException | DigestException e) {
                throw new CryptoException(e.toString());
            }
        }
    }

    private static final class Copy implements Cipher {
        @Override
        public void init(Key key, byte mode) {
        }

        @Override
        public int doFinal(byte[] in, int inOffset, int inLength, byte[] out, int outOffset) {
            System.arraycopy(in, inOffset, out, outOffset, inLength);
            return inLength;
        }
    }
}
