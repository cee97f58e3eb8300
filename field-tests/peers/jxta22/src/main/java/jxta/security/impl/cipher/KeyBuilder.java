package jxta.security.impl.cipher;

import jxta.security.cipher.Key;

/** Stand-in for the lost jxta.security. */
public class KeyBuilder {
    public static Key buildKey(byte type, short length, boolean persistent) {
        return new SecretKey();
    }
}
