package jxta.security.util;

import java.util.Arrays;
import java.util.Base64;

/** Stand-in for the lost jxta.security. */
public class URLBase64 {
    public static byte[] encode(byte[] octets) {
        return Base64.getUrlEncoder().encode(octets);
    }

    public static byte[] decode(byte[] text, int offset, int length) {
        return Base64.getUrlDecoder().decode(Arrays.copyOfRange(text, offset, offset + length));
    }
}
