package COM.claymoresystems.ptls;

/** Stand-in for PureTLS. */
public class SSLDebug {
    public static void setDebug(int flags) {
    }
}
