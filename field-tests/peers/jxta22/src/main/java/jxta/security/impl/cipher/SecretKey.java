package jxta.security.impl.cipher;

import jxta.security.cipher.Key;

/** Stand-in for the lost jxta.security. */
public class SecretKey implements Key {
    public void setKey(byte[] octets, int offset) {
    }
}
