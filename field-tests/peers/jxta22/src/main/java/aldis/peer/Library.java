package aldis.peer;

import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.net.URI;
import net.jxta.document.AdvertisementFactory;
import net.jxta.document.Element;
import net.jxta.document.MimeMediaType;
import net.jxta.document.StructuredDocument;
import net.jxta.document.StructuredDocumentFactory;
import net.jxta.document.StructuredDocumentUtils;
import net.jxta.document.StructuredTextDocument;
import net.jxta.id.IDFactory;
import net.jxta.impl.protocol.HTTPAdv;
import net.jxta.impl.protocol.PlatformConfig;
import net.jxta.impl.protocol.TCPAdv;
import net.jxta.peergroup.PeerGroup;
import net.jxta.peergroup.PeerGroupFactory;
import net.jxta.peergroup.PeerGroupID;
import net.jxta.pipe.PipeID;
import net.jxta.protocol.ModuleImplAdvertisement;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;

/** JXTA J2SE 2.2 of 2003: what has to be done to start it, and what is spelled otherwise than in JXSE 2.7. */
final class Library {
    static final String NAME = "jxta-2.2";

    private static PeerGroup net;

    private Library() {
    }

    /** Sets what must be set before a class of the library is loaded. */
    static void properties(Options options) {
        // The library parses its IDs as URLs and brings a handler for urn: in that package.
        System.setProperty("java.protocol.handler.pkgs", "sun.net.www.protocol");
        // Given, so that no window asks for them.
        System.setProperty("net.jxta.tls.principal", options.name);
        System.setProperty("net.jxta.tls.password", "field-test");
        System.setProperty("java.awt.headless", "true");
    }

    static boolean signs(Options options) {
        return false;
    }

    static PeerGroup start(Options options, File home) throws Exception {
        JavaVersionFix.apply("1.4");
        System.setProperty("JXTA_HOME", home.getPath() + File.separator);
        Logger.getRootLogger().setLevel(Level.WARN);
        configure(options, new File(home, "PlatformConfig"));
        net = PeerGroupFactory.newNetPeerGroup();
        return net;
    }

    /** The pipe of a room, whose ID follows from its name. */
    static PipeID pipe(String name) throws Exception {
        return (PipeID) IDFactory.fromURL(IDFactory.jxtaURL(GroupID.pipe(name)));
    }

    static void stop() {
        net.stopApp();
        net.unref();
    }

    static PeerGroup join(PeerGroup net, String name, boolean publish, boolean rdv, String membership) throws Exception {
        ModuleImplAdvertisement impl = net.getAllPurposePeerGroupImplAdvertisement();
        PeerGroupID id = (PeerGroupID) IDFactory.fromURL(IDFactory.jxtaURL(GroupID.urn(name)));
        PeerGroup group = net.newGroup(id, impl, name, "field-test group " + name);
        if (publish) {
            net.getDiscoveryService().remotePublish(impl);
            net.getDiscoveryService().remotePublish(group.getPeerGroupAdvertisement());
        }
        if (rdv) {
            group.getRendezVousService().startRendezVous();
        }
        return group;
    }

    /** Nobody's: this peer does no TLS. */
    static String certificate(PeerGroup net) {
        return "";
    }

    static void trust(PeerGroup net, String base64) {
        throw new UnsupportedOperationException("no secure pipes");
    }

    /** How one becomes a member of a group, by the name of the library's class. An all-purpose group takes everybody. */
    static String membership(PeerGroup group) {
        return ((ModuleImplAdvertisement) group.getMembershipService().getImplAdvertisement()).getCode();
    }

    /** Writes what the library's configuration window would write. A peer ID that is there already is kept. */
    private static void configure(Options options, File file) throws Exception {
        if (file.exists()) {
            return;
        }
        PlatformConfig config = (PlatformConfig)
                AdvertisementFactory.newAdvertisement(PlatformConfig.getAdvertisementType());
        config.setName(options.name);
        config.setDebugLevel("user default");

        TCPAdv tcp = (TCPAdv) AdvertisementFactory.newAdvertisement(TCPAdv.getAdvertisementType());
        tcp.setProtocol("TCP");
        tcp.setConfigMode("manual");
        tcp.setInterfaceAddress(options.host);
        tcp.setPort(options.port);
        tcp.setClientEnabled(true);
        tcp.setServerEnabled(true);
        tcp.setServer(null);
        tcp.setMulticastAddr("224.0.1.85");
        tcp.setMulticastPort(1234);
        tcp.setMulticastSize(16384);
        tcp.setMulticastState(options.multicast);
        StructuredDocument tcpParm = wrap((StructuredDocument) tcp.getDocument(MimeMediaType.XMLUTF8));
        if (options.http) {
            add(tcpParm, "isOff", null);
        }
        config.putServiceParam(PeerGroup.tcpProtoClassID, tcpParm);

        HTTPAdv http = (HTTPAdv) AdvertisementFactory.newAdvertisement(HTTPAdv.getAdvertisementType());
        http.setProtocol("http");
        http.setConfigMode("manual");
        http.setInterfaceAddress(options.host);
        http.setPort(options.http ? options.port : 9700);
        http.setProxyEnabled(false);
        http.setServerEnabled(options.http && options.rdv);
        http.setClientEnabled(options.http && !options.rdv); // an edge over HTTP lives behind its relay
        StructuredDocument httpParm = wrap((StructuredDocument) http.getDocument(MimeMediaType.XMLUTF8));
        if (!options.http) {
            add(httpParm, "isOff", null);
        }
        config.putServiceParam(PeerGroup.httpProtoClassID, httpParm);

        StructuredDocument rendezvous = parm();
        StructuredDocument relay = parm();
        add(relay, "isServer", String.valueOf(options.rdv));
        add(relay, "isClient", String.valueOf(!options.rdv));
        add(relay, "ClientQueueSize", "20");
        for (URI seed : options.seeds) {
            add(rendezvous, "Addr", seed.toString());
            add(relay, options.http ? "httpaddr" : "tcpaddr", seed.getHost() + ":" + seed.getPort());
        }
        if (options.rdv) {
            add(rendezvous, "Rdv", "true");
        }
        config.putServiceParam(PeerGroup.rendezvousClassID, rendezvous);
        config.putServiceParam(PeerGroup.relayProtoClassID, relay);

        StructuredDocument proxy = parm();
        add(proxy, "isOff", null);
        config.putServiceParam(PeerGroup.proxyClassID, proxy);
        StructuredDocument endpoint = parm();
        add(endpoint, "MessengerQueueSize", "20");
        config.putServiceParam(PeerGroup.endpointClassID, endpoint);

        try (OutputStream out = new FileOutputStream(file)) {
            config.getDocument(MimeMediaType.XMLUTF8).sendToStream(out);
        }
    }

    private static StructuredDocument parm() {
        return (StructuredTextDocument) StructuredDocumentFactory.newStructuredDocument(MimeMediaType.XMLUTF8, "Parm");
    }

    private static StructuredDocument wrap(StructuredDocument advertisement) {
        StructuredDocument doc = parm();
        StructuredDocumentUtils.copyElements(doc, doc, advertisement);
        return doc;
    }

    private static void add(StructuredDocument doc, String name, String value) {
        Element e = value == null ? doc.createElement(name) : doc.createElement(name, value);
        doc.appendChild(e);
    }

    /** Obeys a command of `gateway bench`; false when it is none. */
    static boolean bench(Room room, String verb, java.util.List<String> words) {
        return false; // its pipes are measured by 2.7
    }
}
