package aldis.peer;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** IDs made from names, so that peers of both generations meet in a group or on a pipe without an exchange. */
final class GroupID {
    private static final int UUID_LENGTH = 16;

    private GroupID() {
    }

    /** Of a group. */
    static String urn(String name) throws NoSuchAlgorithmException {
        return "urn:jxta:uuid-" + unique(name) + "02";
    }

    /** Of a pipe of the net peer group. */
    static String pipe(String name) throws NoSuchAlgorithmException {
        return "urn:jxta:uuid-59616261646162614E50472050325033" + unique(name) + "04";
    }

    private static String unique(String name) throws NoSuchAlgorithmException {
        byte[] hash = MessageDigest.getInstance("SHA-256").digest(name.getBytes(StandardCharsets.UTF_8));
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < UUID_LENGTH; i++) {
            int octet = hash[i] & 0xff;
            if (i == UUID_LENGTH - 1) {
                octet |= 1; // a last octet of zero would not be written
            }
            b.append(String.format("%02X", octet));
        }
        return b.toString();
    }
}
