package jxta.security.crypto;

import jxta.security.cipher.Cipher;
import jxta.security.hash.Hash;

/** Stand-in for the lost jxta.security. */
public interface JxtaCrypto {
    Hash getJxtaHash(byte algorithm);

    Hash getJxtaHash();

    Cipher getJxtaCipher();
}
