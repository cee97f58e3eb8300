package COM.claymoresystems.crypto;

import COM.claymoresystems.cert.EAYRSAPrivateKey;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.interfaces.RSAPrivateCrtKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;

/** Stand-in for PureTLS: a private key file in a format of its own, not encrypted. For field tests only. */
public class EAYEncryptedPrivateKey {
    private static final String BEGIN = "-----BEGIN RSA PRIVATE KEY-----";
    private static final String END = "-----END RSA PRIVATE KEY-----";

    public static void writePrivateKey(PrivateKey key, byte[] passphrase, BufferedWriter out) throws IOException {
        // The library skips the line after the first.
        out.write(BEGIN + "\nField-Test: not encrypted\n" + Base64.getEncoder().encodeToString(key.getEncoded()) + "\n" + END + "\n");
        out.flush();
    }

    public static PrivateKey createPrivateKey(BufferedReader in, String algorithm, byte[] passphrase)
            throws IOException {
        for (String line = in.readLine(); line != null && !line.equals(END); line = in.readLine()) {
            if (line.startsWith("-----") || line.contains(":")) {
                continue;
            }
            try {
                return new EAYRSAPrivateKey((RSAPrivateCrtKey) KeyFactory.getInstance("RSA", "SunRsaSign")
                        .generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(line))));
            } catch (GeneralSecurityException e) {
                throw new IOException(e);
            }
        }
        throw new IOException("no key");
    }
}
