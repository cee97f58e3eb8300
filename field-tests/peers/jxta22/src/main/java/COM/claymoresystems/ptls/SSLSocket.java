package COM.claymoresystems.ptls;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;

/** Stand-in for PureTLS: secure pipes are the one thing this peer cannot do. */
public class SSLSocket extends Socket {
    public SSLSocket(SSLContext context, InputStream in, OutputStream out, String host, int port, int mode)
            throws IOException {
        throw new IOException("no TLS: PureTLS is a stand-in");
    }
}
