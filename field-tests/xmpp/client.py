"""A client that slixmpp makes: prints every stanza that comes, one to a line, and sends every line that it reads.

usage: client.py JID PASSWORD HOST PORT    prints "session begun" when the session has begun, and logs in again when the server is back
"""
import asyncio
import logging
import sys

import slixmpp

logging.disable(logging.CRITICAL)
jid, password, host, port = sys.argv[1:5]
client = slixmpp.ClientXMPP(jid, password)
client.enable_direct_tls = False
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
    client.add_event_handler("disconnected", ended)
    client.connect(host, int(port))
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        client.send_raw(line.decode().strip())


asyncio.get_event_loop().run_until_complete(main())
