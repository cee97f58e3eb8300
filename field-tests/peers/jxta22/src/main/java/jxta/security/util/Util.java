package jxta.security.util;

/** Stand-in for the lost jxta.security. */
public class Util {
    public static String hexEncode(byte[] octets) {
        StringBuilder b = new StringBuilder();
        for (byte o : octets) {
            b.append(String.format("%02x", o & 0xff));
        }
        return b.toString();
    }
}
