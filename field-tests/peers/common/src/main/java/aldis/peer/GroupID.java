package aldis.peer;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** A group's ID made from its name, so that peers of both generations meet in it without an exchange. */
final class GroupID {
    private static final int UUID_LENGTH = 16;

    private GroupID() {
    }

    static String urn(String name) throws NoSuchAlgorithmException {
        byte[] hash = MessageDigest.getInstance("SHA-256").digest(name.getBytes(StandardCharsets.UTF_8));
        StringBuilder b = new StringBuilder("urn:jxta:uuid-");
        for (int i = 0; i < UUID_LENGTH; i++) {
            int octet = hash[i] & 0xff;
            if (i == UUID_LENGTH - 1) {
                octet |= 1; // a last octet of zero would not be written
            }
            b.append(String.format("%02X", octet));
        }
        return b.append("02").toString();
    }
}
