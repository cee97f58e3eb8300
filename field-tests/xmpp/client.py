"""A client that slixmpp makes: prints every stanza that comes, one to a line, and sends every line that it reads.

usage: client.py JID PASSWORD HOST PORT [CA]    prints "session begun" when the session has begun, and logs in again when the server is back

With CA, the file of an authority, it speaks TLS and has stream management (XEP-0198): after a broken connection it prints "session resumed".
"""
import asyncio
import logging
import sys
from xml.etree import ElementTree as ET

import slixmpp

logging.disable(logging.CRITICAL)
jid, password, host, port = sys.argv[1:5]
authority = sys.argv[5] if len(sys.argv) > 5 else None
client = slixmpp.ClientXMPP(jid, password)
client.enable_direct_tls = False
if authority:
    client.ca_certs = authority
    client.enable_plaintext = False
    client.register_plugin("xep_0198")
else:
    client.enable_starttls = False
    client.enable_plaintext = True
    client.plugin["feature_mechanisms"].unencrypted_plain = True
    client.plugin["feature_mechanisms"].unencrypted_scram = True
client.register_plugin("xep_0115")
client.register_plugin("xep_0163")
client.auto_authorize = None
client.auto_subscribe = False


def say(text):
    print(" ".join(text.splitlines()), flush=True)


def heard(stanza):
    say(str(stanza))
    return stanza


async def begun(_):
    await client.get_roster()
    client.plugin["xep_0163"].add_interest("http://jabber.org/protocol/geoloc")
    await client.plugin["xep_0115"].update_caps()
    client.send_presence()
    say("session begun")


def ended(_):
    say("disconnected")
    asyncio.get_running_loop().call_later(0.3, client.connect, host, int(port))


async def main():
    client.add_filter("in", heard)
    client.add_event_handler("session_start", begun)
    client.add_event_handler("session_resumed", lambda _: say("session resumed"))
    client.add_event_handler("disconnected", ended)
    client.connect(host, int(port))
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        text = line.decode().strip()
        if authority:
            xml = ET.fromstring(text.replace(" ", " xmlns='jabber:client' ", 1) if " " in text.split(">")[0] else text.replace(">", " xmlns='jabber:client'>", 1))
            client.send({"message": slixmpp.Message, "presence": slixmpp.Presence, "iq": slixmpp.Iq}[xml.tag.split("}")[1]](client, xml=xml))
        else:
            client.send_raw(text)


asyncio.get_event_loop().run_until_complete(main())
