package jxta.security.cipher;

import jxta.security.exceptions.CryptoException;

/** Stand-in for the lost jxta.security. */
public interface Cipher {
    void init(Key key, byte mode) throws CryptoException;

    int doFinal(byte[] in, int inOffset, int inLength, byte[] out, int outOffset) throws CryptoException;
}
