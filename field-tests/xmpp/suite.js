// A session of two StanzaJS clients with a server over WebSocket, part by part: prints "ok PART" or "no PART: why", one to a line.
//
// usage: NODE_PATH=.node/node_modules NODE_EXTRA_CA_CERTS=CA node suite.js DOMAIN ROOMS PORT    users anna and alma, whose password is "secret"
const dns = require('dns');

const XMPP = require('stanza');

const [domain, rooms, port] = process.argv.slice(2);
dns.lookup = (host, options, done) => done(null, options.all ? [{ address: '127.0.0.1', family: 4 }] : '127.0.0.1', 4); // DOMAIN is in no DNS
const room = 'suitejs@' + rooms;
const sleep = ms => new Promise(done => setTimeout(done, ms));

function make(name, resource) {
    const c = XMPP.createClient({
        jid: `${name}@${domain}`, password: 'secret', resource,
        transports: { websocket: `wss://${domain}:${port}/xmpp-websocket`, bosh: false }, autoReconnect: false
    });
    c.heard = [];
    c.on('raw', (way, text) => way === 'incoming' && c.heard.push(text.toString()));
    c.until = async (...texts) => {
        for (let i = 0; i < 1500; i++) {
            if (c.heard.some(line => texts.every(t => line.includes(t)))) return;
            await sleep(20);
        }
        throw new Error(`never heard ${texts}: ${c.heard.slice(-3)}`);
    };
    return c;
}

const started = (c, event) => new Promise(done => c.once(event, done));
const [anna, alma] = [make('anna', 'one'), make('alma', 'two')];

const parts = {
    async login() {
        for (const c of [anna, alma]) {
            const begun = started(c, 'session:started');
            c.connect();
            await begun;
            await c.getRoster();
            c.sendPresence();
        }
    },
    async roster() {
        await anna.updateRosterItem({ jid: `alma@${domain}`, name: 'Alma', groups: ['crew'] });
        await anna.until('jabber:iq:roster', 'crew');
    },
    async subscription() {
        alma.on('subscribe', p => alma.acceptSubscription(p.from));
        anna.subscribe(`alma@${domain}`);
        await anna.until('<presence', `alma@${domain}/two`);
    },
    async presence() {
        alma.sendPresence({ show: 'away', status: 'at the helm' });
        await anna.until('<presence', 'at the helm');
    },
    async chat() {
        anna.sendMessage({ to: `alma@${domain}`, body: 'hello & <good> day', type: 'chat' });
        await alma.until('<message', 'hello &amp; &lt;good&gt; day');
    },
    async carbons() {
        await anna.enableCarbons();
    },
    async ping() {
        await anna.ping(domain);
    },
    async disco() {
        const info = await anna.getDiscoInfo(domain);
        if (!info.features.includes('urn:xmpp:ping')) throw new Error(JSON.stringify(info));
    },
    async muc() {
        await anna.joinRoom(room, 'Anna');
        await alma.joinRoom(room, 'Alma');
        alma.sendMessage({ to: room, body: 'to all', type: 'groupchat' });
        await anna.until('<message', 'to all', `${room}/Alma`);
        await anna.setSubject(room, 'watches');
        await alma.until('<subject>watches</subject>');
        await alma.leaveRoom(room);
        await anna.until('<presence', `${room}/Alma`, 'unavailable');
    },
    async moderation() {
        const deck = 'deckjs@' + rooms;
        await anna.joinRoom(deck, 'Anna');
        await alma.joinRoom(deck, 'Alma');
        await anna.kick(deck, 'Alma', 'too loud');
        await alma.until('<presence', `${deck}/Alma`, 'unavailable', '307', 'too loud');
        await anna.configureRoom(deck, { fields: [{ name: 'muc#roomconfig_membersonly', type: 'boolean', value: true }] });
        const refused = await alma.joinRoom(deck, 'Alma').then(() => null, e => e);
        if (!refused || refused.error.condition !== 'registration-required') throw new Error('she is let in: ' + JSON.stringify(refused));
        await anna.setRoomAffiliation(deck, `alma@${domain}`, 'member');
        await alma.joinRoom(deck, 'Alma');
        const members = await anna.getRoomMembers(deck, { affiliation: 'member' });
        if (!JSON.stringify(members).includes(`alma@${domain}`)) throw new Error(JSON.stringify(members));
        await anna.ban(deck, `alma@${domain}`, 'mutiny');
        await alma.until('<presence', `${deck}/Alma`, '301', 'mutiny');
    },
    async archive() {
        const own = await anna.searchHistory({ with: `alma@${domain}` });
        if (!JSON.stringify(own).includes('hello &')) throw new Error(JSON.stringify(own));
        const all = await anna.searchHistory(room, {});
        if (!JSON.stringify(all).includes('to all')) throw new Error(JSON.stringify(all));
    },
    async resume() {
        const gone = started(anna, '--transport-disconnected');
        anna.transport.socket.terminate();
        await gone;
        await sleep(200);
        alma.sendMessage({ to: `anna@${domain}/one`, body: 'while you were away', type: 'chat' });
        const resumed = started(anna, 'stream:management:resumed');
        anna.connect();
        await resumed;
        await anna.until('while you were away');
    }
};

(async () => {
    for (const [name, part] of Object.entries(parts)) {
        try {
            await Promise.race([part(), sleep(40000).then(() => { throw new Error('no end'); })]);
            console.log('ok', name);
        } catch (e) {
            console.log(`no ${name}: ${e && e.message || JSON.stringify(e)}`.replace(/\n/g, ' ').slice(0, 400));
        }
    }
    process.exit(0);
})();
