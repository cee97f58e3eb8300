package jxta.security.hash;

import jxta.security.exceptions.CryptoException;

/** Stand-in for the lost jxta.security. */
public interface Hash {
    byte getDigestLength();

    int doFinal(byte[] in, int inOffset, int inLength, byte[] out, int outOffset) throws CryptoException;
}
