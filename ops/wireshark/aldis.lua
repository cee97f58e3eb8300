-- Names every frame and field of what two Aldis gateways say to each other.
--
--   gateway analyse CAPTURE --key net.key --decrypt -w clear.pcap
--   wireshark -X lua_script:aldis.lua clear.pcap
--
-- The first command opens the datagrams, because only the gateway has the cipher, the model and the earlier messages that
-- they were coded after. This file reads what it wrote. Of datagrams that are still sealed it names the header; they are
-- looked for at the UDP ports of the preference. The layouts: internal/lab/trace/clear.go, internal/link/seal,
-- internal/link/frame, internal/pmul/compact.go, internal/link/elide. A test of internal/lab/commands holds each field against them.

local aldis = Proto("aldis", "Aldis gateways")
aldis.prefs.ports = Pref.range("UDP ports of sealed datagrams", "7142-7143", "where gateways listen on the link", 65535)

local fields, F = {}, {}
local function field(kind, name, title, ...)
	local f = ProtoField[kind]("aldis." .. name, title, ...)
	F[name] = f
	fields[#fields + 1] = f
end

local onoff = { [0] = "no", [1] = "yes" }
local kinds = { [0] = "P_Mul", "receipt", "hello", "probe", "answer", "data", "NORM", "silence" }
local words = { [0] = "answer at once", "of a train", "send a train", "report", "answer", "events", "no answer" }
local queues = { [0] = "direct", "bulk" }
local pdus = { [0] = "Data_PDU", "Ack_PDU", "Address_PDU", "Discard_Message_PDU", "Address_PDU and its Data_PDU", "parity shard", "turn", "Ack_PDU of complete messages", [9] = "which message the next is read after", [10] = "Address_PDU to a set", [12] = "Address_PDU to a set and its Data_PDU", [15] = "a PDU as in ACP 142" }
local elided = { [0] = "a packet as it is", "DATA of one segment", "DATA", "FLUSH of one segment", "FLUSH", "NACK" }
local forms = { [0] = "deflated", "Protocol Buffers", "brief" }
local items = { "endpoint", "document", "listener", "question" }
local parts = { [0] = "parity", "place in a block", "all that its sender holds", "solicitation", "open message", "open message, young" }
local records = { "message", "item", "state", "no room for more" }

-- The seal.
field("uint8", "seal.version", "Version", base.DEC, nil, 0xe0)
field("uint8", "seal.long", "Long form", base.DEC, onoff, 0x10)
field("uint8", "seal.hint", "Low bits of the sender's id", base.DEC, nil, 0x0f)
field("uint16", "seal.counter16", "Counter, low 16 bits")
field("uint32", "seal.incarnation", "Boot number")
field("uint16", "seal.salt", "Salt", base.HEX)
field("uint32", "seal.counter", "Counter")
field("bytes", "seal.ciphertext", "Ciphertext")
field("bytes", "seal.tag", "Tag")
-- What opening it told.
field("uint16", "from", "From node")
field("uint16", "to", "To node (0: all)")
field("uint32", "incarnation", "Boot number of the sender")
field("uint16", "salt", "Salt of the sender", base.HEX)
field("uint32", "counter", "Counter, whole")
field("uint16", "length", "Octets of the body")
-- Frames.
field("uint8", "frame.kind", "Kind", base.DEC, kinds, 0xe0)
field("uint8", "frame.more", "Another frame follows", base.DEC, onoff, 0x01)
field("uint64", "frame.length", "Octets of the frame's body")
field("uint8", "ack.queue", "Lane", base.DEC, queues, 0x10)
field("uint8", "ack.octets", "Octets of the bitmap", base.DEC, nil, 0x0f)
field("uint16", "ack.cumulative", "Durable up to (low 16 bits)")
field("bytes", "ack.bitmap", "Durable beyond")
field("uint8", "ack.runs", "Pairs of runs beyond it")
field("uint64", "ack.missing", "Numbers that are missing")
field("uint64", "ack.there", "Numbers behind them that are there")
field("uint8", "hello.all", "Greeting to all", base.DEC, onoff, 0x10)
field("uint8", "hello.has_starts", "Earlier starts follow", base.DEC, onoff, 0x08)
field("uint8", "hello.void", "The receiver gives numbers again", base.DEC, onoff, 0x04)
field("uint8", "hello.ended", "The receiver's stream has ended", base.DEC, onoff, 0x02)
field("uint8", "hello.end", "The sender's stream ends", base.DEC, onoff, 0x01)
field("uint32", "hello.store", "Store", base.HEX)
field("uint8", "hello.stream", "Stream")
field("uint32", "hello.heardincarnation", "Heard incarnation of the receiver")
field("uint8", "hello.heardstream", "Heard stream of the receiver")
field("uint32", "hello.digest", "Digest of the items held", base.HEX)
field("uint16", "hello.model", "Compaction model", base.HEX)
field("uint8", "hello.segments", "Understands segments of messages", base.DEC, onoff, 0x80)
field("uint8", "hello.forgot", "Losses of what later messages are coded after", base.DEC, nil, 0x7f)
field("uint8", "hello.ahead", "Takes numbers far ahead, and batches (beside segments)", base.DEC, onoff, 0x40)
field("uint8", "hello.losses", "The same in six bits, beside it", base.DEC, nil, 0x3f)
field("uint16", "hello.first", "First number of a queue")
field("uint16", "hello.seen", "Has everything up to")
field("uint32", "hello.known", "Last start whose numbers count")
field("uint8", "hello.starts", "Earlier starts", base.DEC, nil, 0x0f)
field("uint8", "hello.has_mark", "The mark of the newest roster follows", base.DEC, onoff, 0x10)
field("uint16", "hello.mark", "Mark of the newest roster, which tells it from another of its serial", base.HEX)
field("uint8", "hello.has_corpus", "The name of the network's corpus follows", base.DEC, onoff, 0x20)
field("uint32", "hello.corpus", "Corpus of the network that the sender has", base.HEX)
field("uint8", "hello.has_roster", "The serial of a roster follows", base.DEC, onoff, 0x80)
field("uint8", "hello.has_pair", "An ephemeral key follows", base.DEC, onoff, 0x40)
field("bytes", "hello.ephemeral", "Ephemeral key of the sender's start")
field("uint16", "hello.heardephemeral", "Heard ephemeral key of the receiver (its first octets)", base.HEX)
field("uint16", "hello.roster", "Rosters that the sender keeps (12 bits of the newest serial, 1, three bits of those before it)")
field("uint32", "start.incarnation", "Earlier start")
field("uint16", "start.first", "First number of a queue in it")
field("uint8", "greeting.starts", "First of the sender's start", base.DEC, onoff, 0x02)
field("uint8", "greeting.has_roster", "The serial of a roster follows", base.DEC, onoff, 0x04)
field("uint8", "greeting.has_corpus", "The name of the network's corpus follows", base.DEC, onoff, 0x08)
field("uint32", "greeting.corpus", "Corpus of the network that the sender has", base.HEX)
field("uint16", "greeting.roster", "Rosters that the sender keeps (12 bits of the newest serial, 1, three bits of those before it)")
field("uint8", "greeting.more", "There are other members", base.DEC, onoff, 0x01)
field("uint32", "greeting.store", "Store", base.HEX)
field("uint8", "greeting.stream", "Stream")
field("uint32", "greeting.digest", "Digest of the items held", base.HEX)
field("uint16", "greeting.model", "Compaction model", base.HEX)
field("uint8", "greeting.ahead", "Takes numbers far ahead, and batches", base.DEC, onoff, 0x40)
field("uint8", "greeting.forgot", "Losses of what later messages are coded after", base.DEC, nil, 0x3f)
field("uint8", "greeting.has_mark", "The mark of the newest roster follows", base.DEC, onoff, 0x80)
field("uint16", "greeting.mark", "Mark of the newest roster, which tells it from another of its serial", base.HEX)
field("uint16", "greeting.first", "First number of a queue")
field("uint8", "greeting.members", "Members that are named")
field("uint64", "member.id", "Member")
field("bool", "member.asks", "An answer is wanted")
field("bool", "member.blank", "The digest says nothing of what this one holds")
field("bool", "member.apart", "Nothing here is for this one")
field("bool", "member.told", "Stream and numbers follow")
field("uint32", "member.heardincarnation", "Heard incarnation")
field("uint8", "member.stream", "Stream")
field("uint8", "member.heardstream", "Heard stream")
field("uint16", "member.seen", "Has everything up to")
field("uint8", "probe.id", "Probe")
field("uint8", "answer.id", "Answers the probe")
field("bytes", "linkprobe.body", "Word of a link probe")
field("uint8", "linkprobe.op", "Word", base.DEC, words)
field("uint8", "linkprobe.id", "Survey")
field("uint64", "linkprobe.seq", "Number of the datagram")
field("uint64", "linkprobe.small", "Octets of a datagram of the train")
field("uint64", "linkprobe.count", "Datagrams of the train")
field("uint64", "linkprobe.large", "Octets of the one in its middle")
field("uint64", "linkprobe.from", "First event of the report")
field("uint64", "linkprobe.total", "Events in all")
field("uint64", "linkprobe.events", "Events that follow")
field("uint64", "linkprobe.event", "Time since the event before (units of 0.1 ms, times 4), and flags")
field("uint64", "linkprobe.event.seq", "Number of its datagram")
field("uint8", "linkprobe.why", "Why (1: it has answered enough for an hour)")
field("bytes", "linkprobe.fill", "Filled up")
field("uint8", "data.rides", "A receipt rides", base.DEC, onoff, 0x10)
field("uint8", "data.wide", "16 bits of the number", base.DEC, onoff, 0x08)
field("uint8", "data.prompt", "A receipt is wanted at once", base.DEC, onoff, 0x04)
field("uint8", "data.free", "Need not wait for those before", base.DEC, onoff, 0x02)
field("uint16", "data.number", "Number")
field("uint8", "data.after", "Waits for the one so far before")
field("uint8", "data.cumulative", "Durable up to (low 8 bits)")
field("bytes", "data.body", "Message as coded")
field("uint8", "segment.rides", "A receipt rides", base.DEC, onoff, 0x10)
field("uint8", "segment.wide", "16 bits of the number", base.DEC, onoff, 0x08)
field("uint8", "segment.prompt", "A receipt is wanted at once", base.DEC, onoff, 0x04)
field("uint16", "segment.number", "Number")
field("uint8", "segment.cumulative", "Durable up to (low 8 bits)")
field("uint8", "segment.object", "Message, the low 7 bits of its number", base.DEC, nil, 0xfe)
field("uint8", "segment.first", "The first of it", base.DEC, onoff, 0x01)
field("uint64", "segment.total", "Octets of the message as coded")
field("uint8", "segment.free", "Need not wait for those before", base.DEC, onoff)
field("bytes", "segment.body", "Part of a message as coded")
field("uint8", "envelope.form", "Form", base.DEC, forms)
field("uint8", "envelope.alike", "All alike", base.DEC, onoff, 0x40)
field("uint64", "envelope.flow", "Flow")
field("uint16", "talkers.ids", "A site that has sent messages")
field("uint8", "beside.bearer", "Mark of another bearer", base.HEX)
field("uint8", "beside.stream", "Stream of its receiver's numbers there")
field("absolute_time", "silence.until", "Silent until (1970: until it speaks)", base.UTC)
field("uint8", "query.ref", "Number of the question", base.DEC, nil, 0x06)
field("uint8", "query.regular", "In the regular form", base.DEC, onoff, 0x01)
field("bytes", "query.body", "Question")
field("uint8", "told.ref", "Number of the question", base.DEC, nil, 0x06)
field("uint8", "told.regular", "In the regular form", base.DEC, onoff, 0x01)
field("bytes", "told.body", "Answer")
-- Groups.
field("uint16", "digest.tag", "Group", base.HEX)
field("uint16", "digest.hash", "Hash of what its sender holds (0: it is not in the group)", base.HEX)
field("uint8", "digest.fresh", "Knows of nobody else in the group", base.DEC, onoff, 0x10)
field("bytes", "open.body", "Of groups")
-- Of the fleet.
field("uint8", "rollup.number", "Number")
field("bytes", "rollup.body", "Records of gateways")
field("uint8", "rolled.number", "Number of what is there")
field("uint8", "open.kind", "Part", base.DEC, parts, 0xe0)
field("uint16", "open.tag", "Group", base.HEX)
field("uint64", "open.origin", "Origin")
field("bytes", "open.number", "Number (upper 32 bits: epoch)")
field("uint8", "open.last", "The last part", base.DEC, onoff, 0x10)
field("uint8", "open.names", "Later ones refer to its names", base.DEC, onoff, 0x08)
field("uint8", "open.hops", "Gateways that may take it after the next", base.DEC, nil, 0x07)
field("uint8", "open.left", "Lifetime left (eighths of powers of two seconds; from 132: for its names alone)")
field("uint8", "open.life", "Lifetime (the same)")
field("bytes", "open.content", "Content and signature")
field("bytes", "open.rest", "Ranges, or sum")
-- P_Mul.
field("bytes", "pmul.body", "PDUs")
field("uint8", "pmul.type", "Type", base.DEC, pdus, 0x0f)
field("uint8", "pmul.flag.source", "Source follows", base.DEC, onoff, 0x10)
field("uint8", "pmul.flag.length", "Length follows", base.DEC, onoff, 0x20)
field("uint8", "pmul.flag.plan", "Plan follows", base.DEC, onoff, 0x20)
field("uint8", "pmul.flag.priority", "Priority follows", base.DEC, onoff, 0x40)
field("uint8", "pmul.flag.map", "MAP follows", base.DEC, onoff, 0x80)
field("uint8", "pmul.flag.at_once", "Goes again, to be acknowledged at once", base.DEC, onoff, 0x80)
field("uint8", "pmul.flag.of", "Whose messages follows", base.DEC, onoff, 0x80)
field("uint64", "pmul.source", "Source_ID")
field("uint64", "pmul.message", "Message_ID")
field("uint8", "pmul.priority", "Priority")
field("uint64", "pmul.number", "Sequence_Number of the PDU")
field("uint64", "pmul.length", "Octets")
field("bytes", "pmul.fragment", "Fragment")
field("uint64", "pmul.total", "Total_Number_of_PDUs")
field("absolute_time", "pmul.expiry", "Expiry_Time", base.UTC)
field("uint8", "pmul.map", "MAP", base.HEX)
field("uint8", "pmul.batch", "A batch of several messages", base.DEC, onoff, 0x01)
field("uint64", "pmul.plan.last", "Octets of the last fragment")
field("uint64", "pmul.plan.follow", "PDUs that follow")
field("uint64", "pmul.destinations", "Destinations")
field("uint64", "pmul.destination.node", "Destination_ID")
field("uint64", "pmul.destination.sequence", "Message_Sequence_Number")
field("uint64", "pmul.index", "Parity shard")
field("uint64", "pmul.left", "Shards that follow")
field("bytes", "pmul.shard", "Shard")
field("uint8", "pmul.flag.more", "Wants another turn", base.DEC, onoff, 0x80)
field("uint8", "pmul.turn.number", "Number of the turn")
field("uint64", "pmul.turn.next", "Who speaks next")
field("uint64", "pmul.turn.left", "Left of the turn, 250 ms each")
field("uint64", "pmul.after", "The next message is read after the one so many before it")
field("uint64", "pmul.ack.of", "Source_ID of the messages")
field("uint64", "pmul.ack.entries", "Entries")
field("uint64", "pmul.ack.message", "Message_ID")
field("bool", "pmul.ack.cut", "The list is cut")
field("uint64", "pmul.ack.more", "Messages that follow it")
field("uint64", "pmul.ack.runs", "Runs that are missing")
field("uint64", "pmul.ack.from", "Missing from")
field("uint64", "pmul.ack.to", "Missing to")
-- NORM.
field("bytes", "norm.body", "Packet")
field("uint8", "norm.grtt_follows", "GRTT follows", base.DEC, onoff, 0x08)
field("uint8", "norm.kind", "Kind", base.DEC, elided, 0x07)
field("uint8", "norm.generation", "Generation")
field("uint8", "norm.grtt", "GRTT")
field("uint64", "norm.object", "Object")
field("uint64", "norm.size", "Octets of the object")
field("uint64", "norm.block", "Block")
field("uint64", "norm.symbol", "Symbol")
field("bytes", "norm.payload", "Payload")
field("uint8", "norm.nack.count2", "Items less one (3: a count follows)", base.DEC, nil, 0xc0)
field("uint8", "norm.nack.flags", "Flags", base.HEX, nil, 0x3c)
field("uint8", "norm.nack.form", "Form", base.DEC, nil, 0x03)
field("uint64", "norm.nack.count", "Items")
-- What could be read of messages.
field("uint8", "record.type", "Record", base.DEC, records)
field("uint8", "message.published", "Published", base.DEC, onoff)
field("string", "message.scope", "Group")
field("string", "message.topic", "Pipe")
field("string", "message.sender", "Sender")
field("string", "message.receiver", "Receiver")
field("string", "message.service", "Service")
field("string", "message.param", "Parameter")
field("uint64", "message.elements", "Elements")
field("string", "element.namespace", "Namespace")
field("string", "element.name", "Name")
field("string", "element.type", "Type")
field("bytes", "element.data", "Data")
field("string", "element.text", "Text")
field("uint8", "item.kind", "Kind", base.DEC, items)
field("uint8", "item.gone", "Withdrawn", base.DEC, onoff)
field("string", "item.scope", "Group")
field("string", "item.owner", "Owner")
field("string", "item.id", "ID")
field("absolute_time", "item.expires", "Expires (1970: never)", base.UTC)
field("string", "item.document", "Document")
field("uint64", "state.have", "Items held of the receiver's")
field("uint64", "state.void", "Items that the sender's site does not have")
field("uint64", "state.renew", "Items that live longer now")
field("uint64", "state.again", "P_Mul messages asked for again")
field("uint64", "state.lost", "Messages that could be handed to nobody")
aldis.fields = fields

local malformed = ProtoExpert.new("aldis.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
aldis.experts = { malformed }

-- A cursor over octets. Reading beyond the end raises an error, which the caller turns into the expert info.
local Cursor = {}
Cursor.__index = Cursor
local function cursor(tvb, at, to) return setmetatable({ tvb = tvb, at = at, to = to }, Cursor) end
function Cursor:left() return self.to - self.at end
function Cursor:take(n)
	if n < 0 or n > self:left() then error("aldis: cut short at octet " .. self.at, 0) end
	local range = self.tvb(self.at, n)
	self.at = self.at + n
	return range
end
function Cursor:rest() return self:take(self:left()) end
function Cursor:peek() return self.tvb(self.at, 1) end
function Cursor:add(tree, name, n)
	local range = self:take(n)
	tree:add(F[name], range)
	return n <= 4 and range:uint() or nil
end
-- Flags of one octet, which is not taken.
function Cursor:flags(tree, ...)
	for _, name in ipairs({ ... }) do tree:add(F[name], self:peek()) end
	return self:take(1):uint()
end
-- An unsigned varint (LEB128), as a number: none of ours needs more than 53 bits. Answers its octets too.
function Cursor:varint()
	local from, value, scale = self.at, 0, 1
	repeat
		if self.at - from >= 8 then error("aldis: a number too large at octet " .. from, 0) end
		local octet = self:take(1):uint()
		value, scale = value + (octet % 128) * scale, scale * 128
	until octet < 128
	return value, self.tvb(from, self.at - from)
end
function Cursor:number(tree, name)
	local value, range = self:varint()
	tree:add(F[name], range, UInt64.new(value % 4294967296, math.floor(value / 4294967296)))
	return value
end
function Cursor:bytes(tree, name, n)
	if n > 0 then tree:add(F[name], self:take(n)) end
end
function Cursor:time(tree, name)
	local range = self:take(4)
	tree:add(F[name], range, NSTime.new(range:uint(), 0))
end
function Cursor:text(tree, name)
	local n, range = self:varint()
	if n == 0 then
		tree:add(F[name], range, "")
		return ""
	end
	local text = self:take(n)
	tree:add(F[name], text)
	return text:string()
end
local function bit(value, mask) return math.floor(value / mask) % 2 == 1 end

-- The first octet of a message as coded says its form.
local function envelope(c, tree)
	if c:left() == 0 then return end
	local sub, first = tree:add(aldis, c.tvb(c.at, c:left()), "Envelope"), c:peek():uint()
	local form = first == 0 and 0 or first < 128 and 1 or 2
	sub:add(F["envelope.form"], c:peek(), form)
	if form == 2 then
		sub:add(F["envelope.alike"], c:peek())
		local at = c.at
		c:take(1)
		local flow, range = first % 64, c.tvb(at, 1)
		if flow == 63 then flow, range = c:varint() end
		sub:add(F["envelope.flow"], range, UInt64.new(flow, 0))
		c.at = at
	end
	c:bytes(sub, "data.body", c:left())
end

local function hello(c, tree)
	c:add(tree, "hello.store", 4)
	c:add(tree, "hello.stream", 1)
	c:add(tree, "hello.heardincarnation", 4)
	c:add(tree, "hello.heardstream", 1)
	c:add(tree, "hello.digest", 4)
	c:add(tree, "hello.model", 2)
	if c:peek():uint() >= 0xc0 then
		c:flags(tree, "hello.segments", "hello.ahead", "hello.losses")
	else
		c:flags(tree, "hello.segments", "hello.ahead", "hello.forgot")
	end
	c:add(tree, "hello.first", 2)
	c:add(tree, "hello.first", 2)
	c:add(tree, "hello.seen", 2)
end

local function starts(c, tree)
	local count = c:flags(tree, "hello.has_roster", "hello.has_pair", "hello.has_corpus", "hello.has_mark", "hello.starts")
	if bit(count, 0x80) then c:add(tree, "hello.roster", 2) end
	if bit(count, 0x10) then c:add(tree, "hello.mark", 2) end
	if bit(count, 0x40) then
		c:add(tree, "hello.ephemeral", 32)
		c:add(tree, "hello.heardephemeral", 2)
	end
	if bit(count, 0x20) then c:add(tree, "hello.corpus", 4) end
	for _ = 1, count % 16 do
		c:add(tree, "start.incarnation", 4)
		c:add(tree, "start.first", 2)
		c:add(tree, "start.first", 2)
	end
end

local function greeting(c, tree)
	c:add(tree, "greeting.store", 4)
	c:add(tree, "greeting.stream", 1)
	c:add(tree, "greeting.digest", 4)
	c:add(tree, "greeting.model", 2)
	local forgot = c:flags(tree, "greeting.has_mark", "greeting.ahead", "greeting.forgot")
	c:add(tree, "greeting.first", 2)
	c:add(tree, "greeting.first", 2)
	local id = 0
	for _ = 1, c:add(tree, "greeting.members", 1) do
		local head, range = c:varint()
		id = id + math.floor(head / 16)
		local sub = tree:add(aldis, range, "Member " .. id)
		sub:add(F["member.id"], range, UInt64.new(id, 0))
		sub:add(F["member.asks"], range, bit(head, 1))
		sub:add(F["member.blank"], range, bit(head, 2))
		sub:add(F["member.apart"], range, bit(head, 4))
		sub:add(F["member.told"], range, bit(head, 8))
		if not bit(head, 4) then
			c:add(sub, "member.heardincarnation", 4)
			if bit(head, 8) then
				c:add(sub, "member.stream", 1)
				c:add(sub, "member.heardstream", 1)
				c:add(sub, "member.seen", 2)
			end
		end
	end
	return bit(forgot, 0x80)
end

local function ack(c, tree, flags, runs)
	if bit(flags, 0x80) then c:number(tree, "pmul.ack.of") end
	local message = 0
	for i = 1, c:number(tree, "pmul.ack.entries") do
		local step, range = c:varint()
		if i == 1 then
			message = step
		elseif step % 2 == 0 then -- zigzag
			message = (message + step / 2) % 4294967296
		else
			message = (message - (step + 1) / 2) % 4294967296
		end
		local sub = tree:add(aldis, range, "Entry")
		sub:add(F["pmul.ack.message"], range, UInt64.new(message, 0))
		if runs then -- and so many after it
			local more
			more, range = c:varint()
			sub:add(F["pmul.ack.more"], range, UInt64.new(more, 0))
			message = (message + more + 1) % 4294967296
		else
			local head
			head, range = c:varint()
			sub:add(F["pmul.ack.cut"], range, bit(head, 1))
			sub:add(F["pmul.ack.runs"], range, UInt64.new(math.floor(head / 2), 0))
			local last = 0
			for _ = 1, math.floor(head / 2) do
				step, range = c:varint()
				local from = last + 1 + math.floor(step / 2)
				last = from
				sub:add(F["pmul.ack.from"], range, UInt64.new(from, 0))
				if step % 2 == 1 then
					local more
					more, range = c:varint()
					last = from + 1 + more
				end
				sub:add(F["pmul.ack.to"], range, UInt64.new(last, 0))
			end
		end
	end
end

local function fragment(c, tree, flags, name)
	local n = c:left()
	if bit(flags, 0x20) then n = c:number(tree, "pmul.length") end
	c:bytes(tree, name, n)
end

-- Destinations as a set: runs of nodes, and how far their sequences are from the least of them.
local function set(c, tree)
	local head, counted = c:varint()
	local nodes, last = {}, 0
	for _ = 1, math.floor(head / 2) do
		local step, range = c:varint()
		local from = last + 1 + math.floor(step / 2)
		last = from
		if step % 2 == 1 then last = from + 1 + (c:varint()) end
		if last - from + #nodes >= 1024 then error("aldis: too many destinations at octet " .. c.at, 0) end
		for node = from, last do nodes[#nodes + 1] = { node, range } end
	end
	tree:add(F["pmul.destinations"], counted, UInt64.new(#nodes, 0))
	local least, range = c:varint()
	local width, held, bits = 0, 0, 0
	if bit(head, 1) then width = c:take(1):uint() end
	if width > 32 then error("aldis: differences too large at octet " .. c.at, 0) end
	for _, node in ipairs(nodes) do
		while bits < width do
			range = c:take(1)
			held, bits = held + range:uint() * 2 ^ bits, bits + 8
		end
		local sequence = least + held % 2 ^ width
		held, bits = math.floor(held / 2 ^ width), bits - width
		tree:add(F["pmul.destination.node"], node[2], UInt64.new(node[1], 0))
		tree:add(F["pmul.destination.sequence"], range, UInt64.new(sequence, 0))
	end
end

-- One PDU of P_Mul in the compact coding.
local function pdu(c, tree, pinfo)
	local head = c:peek():uint()
	local kind, flags = head % 16, head - head % 16
	local sub = tree:add(aldis, c.tvb(c.at, c:left()), pdus[kind] or "unknown")
	local to_set = kind == 10 or kind == 12
	if to_set then kind = kind - 8 end
	local from = c.at
	local names = { "pmul.type" }
	if kind ~= 15 then
		names = { "pmul.type", "pmul.flag.source", "pmul.flag.priority" }
		if kind == 0 or kind == 4 or kind == 5 then names[#names + 1] = "pmul.flag.length" end
		if kind == 4 then names[#names + 1] = "pmul.flag.at_once" end
		if kind == 2 then
			names[#names + 1] = "pmul.flag.plan"
			names[#names + 1] = "pmul.flag.map"
		end
		if kind == 6 then names = { "pmul.type", "pmul.flag.more" } end
		if kind == 9 then names = { "pmul.type" } end
		if kind == 1 or kind == 7 then names = { "pmul.type", "pmul.flag.source", "pmul.flag.of" } end
	end
	c:flags(sub, table.unpack(names))
	if kind == 15 then
		local n = c:number(sub, "pmul.length")
		Dissector.get("p_mul"):call(c:take(n):tvb(), pinfo, sub)
		sub:set_len(c.at - from)
		return
	end
	if not pdus[kind] then error("aldis: unknown P_Mul type " .. kind, 0) end
	if bit(flags, 0x10) then c:number(sub, "pmul.source") end
	if kind == 1 or kind == 7 then
		ack(c, sub, flags, kind == 7)
	elseif kind == 9 then
		c:number(sub, "pmul.after")
	elseif kind == 6 then
		c:add(sub, "pmul.turn.number", 1)
		c:number(sub, "pmul.turn.next")
		c:number(sub, "pmul.turn.left")
	else
		c:number(sub, "pmul.message")
		if bit(flags, 0x40) then c:add(sub, "pmul.priority", 1) end
		if kind == 0 then
			c:number(sub, "pmul.number")
			fragment(c, sub, flags, "pmul.fragment")
		elseif kind == 5 then
			c:number(sub, "pmul.index")
			c:number(sub, "pmul.left")
			fragment(c, sub, flags, "pmul.shard")
		elseif kind == 2 or kind == 4 then
			if kind == 2 then c:number(sub, "pmul.total") end
			c:time(sub, "pmul.expiry")
			if kind == 2 and bit(flags, 0x80) then c:flags(sub, "pmul.map", "pmul.batch") end
			if kind == 2 and bit(flags, 0x20) then
				c:number(sub, "pmul.plan.last")
				c:number(sub, "pmul.plan.follow")
			end
			if to_set then
				set(c, sub)
			else
				for _ = 1, c:number(sub, "pmul.destinations") do
					c:number(sub, "pmul.destination.node")
					c:number(sub, "pmul.destination.sequence")
				end
			end
			if kind == 4 then fragment(c, sub, flags, "pmul.fragment") end
		end
	end
	sub:set_len(c.at - from)
end

-- A packet of NORM with the fields left out that both ends know.
local function norm(c, tree, pinfo)
	local first = c:flags(tree, "norm.grtt_follows", "norm.kind")
	local kind = first % 8
	if first == 0 then
		Dissector.get("norm"):call(c:rest():tvb(), pinfo, tree)
		return
	end
	if not elided[kind] then error("aldis: unknown NORM kind " .. kind, 0) end
	c:add(tree, "norm.generation", 1)
	if bit(first, 8) then c:add(tree, "norm.grtt", 1) end
	local function position()
		local at, range = c:varint()
		tree:add(F["norm.block"], range, UInt64.new(math.floor(at / 32), 0))
		tree:add(F["norm.symbol"], range, UInt64.new(at % 32, 0))
	end
	if kind == 5 then
		while c:left() > 0 do
			local head = c:flags(tree, "norm.nack.count2", "norm.nack.flags", "norm.nack.form")
			local count = math.floor(head / 64) + 1
			if count == 4 then count = c:number(tree, "norm.nack.count") end
			for _ = 1, count do
				c:number(tree, "norm.object")
				c:number(tree, "norm.block")
				c:add(tree, "norm.symbol", 1)
			end
		end
		return
	end
	c:number(tree, "norm.object")
	if kind == 2 then c:number(tree, "norm.size") end
	if kind == 2 or kind == 4 then position() end
	if kind <= 2 then c:bytes(tree, "norm.payload", c:left()) end
end

-- The body of a frame: so long as it says, or to the end of the datagram.
local function body(c, tree, flags)
	local n = c:left()
	if bit(flags, 1) then n = c:number(tree, "frame.length") end
	c:take(n)
	return cursor(c.tvb, c.at - n, c.at)
end

-- A word of a link probe runs to the end of the datagram.
local function linkprobe(c, tree)
	tree:add(F["linkprobe.body"], c.tvb(c.at, c:left()))
	local op = c:add(tree, "linkprobe.op", 1)
	c:add(tree, "linkprobe.id", 1)
	c:number(tree, "linkprobe.seq")
	if op == 2 then
		for _, name in ipairs({ "linkprobe.small", "linkprobe.count", "linkprobe.large" }) do c:number(tree, name) end
	elseif op == 3 then
		c:number(tree, "linkprobe.from")
	elseif op == 5 then
		c:number(tree, "linkprobe.from")
		c:number(tree, "linkprobe.total")
		for _ = 1, c:number(tree, "linkprobe.events") do
			if bit(c:number(tree, "linkprobe.event"), 2) then c:number(tree, "linkprobe.event.seq") end
		end
	elseif op == 6 then
		c:add(tree, "linkprobe.why", 1)
	end
	c:bytes(tree, "linkprobe.fill", c:left())
end

-- What entropy's frames say: messages up to the last, their places and parities, or these up to a list, which runs to the end.
local function open(c, tree)
	tree:add(F["open.body"], c.tvb(c.at, c:left()))
	while c:left() > 0 do
		local head = c:peek():uint()
		local kind = math.floor(head / 32)
		if kind >= 4 then
			c:flags(tree, "open.kind", "open.last", "open.names", "open.hops")
			local after = c.to
			if not bit(head, 0x10) then
				local octets = c:varint()
				after = c.at + octets
			end
			c:add(tree, "open.tag", 2)
			c:number(tree, "open.origin")
			c:bytes(tree, "open.number", 6)
			if kind == 4 then c:add(tree, "open.left", 1) end
			c:add(tree, "open.life", 1)
			c:bytes(tree, "open.content", after - c.at)
		elseif kind == 0 then
			c:add(tree, "open.kind", 1)
			local after = c:varint()
			after = c.at + after
			c:add(tree, "open.tag", 2)
			c:bytes(tree, "open.rest", after - c.at)
		elseif kind == 1 then
			c:add(tree, "open.kind", 1)
		else
			c:add(tree, "open.kind", 1)
			c:add(tree, "open.tag", 2)
			c:bytes(tree, "open.rest", c:left())
		end
	end
end

local function frame(c, tree, pinfo, said)
	local from, head = c.at, c:peek():uint()
	local kind = math.floor(head / 32)
	local name = kinds[kind]
	if kind == 2 and bit(head, 0x10) then name = "greeting" end
	if kind == 3 and bit(head, 0x10) then name = "linkprobe" end
	if kind == 4 and bit(head, 0x08) then name = "ack" end
	if kind == 4 and bit(head, 0x10) then name = "open" end
	if kind == 6 and bit(head, 0x02) then name = "segment" end
	if kind == 7 and bit(head, 0x01) then name = "talkers" end
	if kind == 7 and bit(head, 0x02) then name = "beside" end
	if kind == 7 and bit(head, 0x04) then name = "open" end
	if kind == 7 and bit(head, 0x08) then name = "digest" end
	if kind == 7 and math.floor(head / 2) % 4 > 0 and head % 32 > 7 then name = bit(head, 0x10) and "query" or "told" end
	if kind == 7 and head % 32 == 3 then name = "rollup" end
	if kind == 7 and head % 32 == 5 then name = "rolled" end
	said[#said + 1] = name
	local sub = tree:add(aldis, c.tvb(from, c:left()), "Frame: " .. name)
	sub:add(F["frame.kind"], c:peek())
	if name == "ack" then
		c:take(1)
		c:add(sub, "ack.cumulative", 2)
		for _ = 1, c:add(sub, "ack.runs", 1) do
			c:number(sub, "ack.missing")
			c:number(sub, "ack.there")
		end
	elseif kind == 1 then
		local flags = c:flags(sub, "ack.queue", "ack.octets")
		c:add(sub, "ack.cumulative", 2)
		c:bytes(sub, "ack.bitmap", flags % 16)
	elseif kind == 2 and bit(head, 0x10) then
		c:flags(sub, "hello.all", "greeting.has_corpus", "greeting.has_roster", "greeting.starts", "greeting.more")
		local marked = greeting(c, sub)
		if bit(head, 0x04) then c:add(sub, "greeting.roster", 2) end
		if marked then c:add(sub, "greeting.mark", 2) end
		if bit(head, 0x08) then c:add(sub, "greeting.corpus", 4) end
	elseif kind == 2 then
		c:flags(sub, "hello.all", "hello.has_starts", "hello.void", "hello.ended", "hello.end")
		hello(c, sub)
		if bit(head, 0x04) then c:add(sub, "hello.known", 4) end
		if bit(head, 0x08) then starts(c, sub) end
	elseif name == "linkprobe" then
		c:take(1)
		linkprobe(c, sub)
	elseif kind == 4 and name == "open" then -- one young message: its first octet is in this one
		local octets = c:rest():bytes()
		octets:set_index(0, 0xb0 + head % 16)
		open(cursor(octets:tvb("Open message"), 0, octets:len()), sub)
	elseif kind == 3 or kind == 4 then
		c:take(1)
		c:add(sub, name .. ".id", 1)
	elseif kind == 5 then
		c:flags(sub, "data.rides", "data.wide", "data.prompt", "data.free", "frame.more")
		c:add(sub, "data.number", bit(head, 0x08) and 2 or 1)
		if bit(head, 0x02) then c:add(sub, "data.after", 1) end
		if bit(head, 0x10) then c:add(sub, "data.cumulative", 1) end
		envelope(body(c, sub, head), sub)
	elseif name == "segment" then
		c:flags(sub, "segment.rides", "segment.wide", "segment.prompt", "frame.more")
		c:add(sub, "segment.number", bit(head, 0x08) and 2 or 1)
		if bit(head, 0x10) then c:add(sub, "segment.cumulative", 1) end
		local of = c:flags(sub, "segment.object", "segment.first")
		if bit(of, 0x01) then
			local at = c.at
			local total = c:varint()
			local range = c.tvb(at, c.at - at)
			sub:add(F["segment.total"], range, UInt64.new(math.floor(total / 2), 0))
			sub:add(F["segment.free"], range, total % 2)
		end
		local inside = body(c, sub, head)
		inside:bytes(sub, "segment.body", inside:left())
	elseif name == "talkers" then
		c:take(1)
		local id = 0
		for _ = 1, c:take(1):uint() do
			id = id + c:varint()
			local many, range = c:varint()
			for _ = 1, many do
				sub:add(F["talkers.ids"], range, id)
				id = id + 1
			end
		end
	elseif name == "beside" then
		c:take(1)
		c:add(sub, "beside.bearer", 1)
		c:add(sub, "beside.stream", 1)
		frame(c, sub, pinfo, said)
	elseif name == "digest" then
		c:flags(sub, "digest.fresh")
		c:add(sub, "digest.tag", 2)
		c:add(sub, "digest.hash", 2)
	elseif name == "rollup" then
		c:take(1)
		c:add(sub, "rollup.number", 1)
		c:bytes(sub, "rollup.body", c:varint())
	elseif name == "rolled" then
		c:take(1)
		c:add(sub, "rolled.number", 1)
	elseif name == "query" then
		c:flags(sub, "query.ref", "query.regular")
		c:bytes(sub, "query.body", c:left())
	elseif name == "told" then
		c:flags(sub, "told.ref", "told.regular")
		c:bytes(sub, "told.body", c:left())
	elseif name == "open" then
		c:take(1)
		open(c, sub)
	elseif kind == 7 then
		c:take(1)
		c:time(sub, "silence.until")
	else
		c:flags(sub, "frame.more")
		local inside = body(c, sub, head)
		sub:add(F[kind == 0 and "pmul.body" or "norm.body"], c.tvb(inside.at, inside:left()))
		if kind == 6 then
			norm(inside, sub, pinfo)
		else
			while inside:left() > 0 do pdu(inside, sub, pinfo) end
		end
	end
	sub:set_len(c.at - from)
end

local function record(c, tree)
	local from, kind = c.at, c:peek():uint()
	local sub = tree:add(aldis, c.tvb(from, c:left()), "Read: " .. (records[kind] or "unknown"))
	c:add(sub, "record.type", 1)
	if kind == 1 then
		c:add(sub, "message.published", 1)
		for _, name in ipairs({ "scope", "topic", "sender", "receiver", "service", "param" }) do c:text(sub, "message." .. name) end
		for _ = 1, c:number(sub, "message.elements") do
			local at = c.at
			local element = sub:add(aldis, c.tvb(at, c:left()), "Element")
			c:text(element, "element.namespace")
			element:append_text(": " .. c:text(element, "element.name"))
			c:text(element, "element.type")
			local n = c:varint()
			if n > 0 then
				local data = c:take(n)
				element:add(F["element.data"], data)
				if not data:raw():find("[^\t\r\n\32-\126]") then element:add(F["element.text"], data) end
			end
			element:set_len(c.at - at)
		end
	elseif kind == 2 then
		c:add(sub, "item.kind", 1)
		c:add(sub, "item.gone", 1)
		c:text(sub, "item.scope")
		c:text(sub, "item.owner")
		c:text(sub, "item.id")
		c:time(sub, "item.expires")
		c:text(sub, "item.document")
	elseif kind == 3 then
		for _, name in ipairs({ "have", "void", "renew", "again", "lost" }) do c:number(sub, "state." .. name) end
	elseif kind ~= 4 then
		error("aldis: unknown record " .. kind, 0)
	end
	sub:set_len(c.at - from)
end

local function head(c, tree)
	local flags = c:flags(tree, "seal.version", "seal.long", "seal.hint")
	if bit(flags, 0x10) then
		c:add(tree, "seal.incarnation", 4)
		c:add(tree, "seal.salt", 2)
		c:add(tree, "seal.counter", 4)
	else
		c:add(tree, "seal.counter16", 2)
	end
end

local magic = "aldisop1"

local function inClear(tvb, pinfo, tree)
	local c = cursor(tvb, #magic, tvb:len())
	local n = c:take(1):uint()
	local seal = tree:add(aldis, tvb(c.at, n), "Seal")
	local h = cursor(tvb, c.at, c.at + n)
	c:take(n)
	head(h, seal)
	local from, to = c:add(tree, "from", 2), c:add(tree, "to", 2)
	c:add(tree, "incarnation", 4)
	c:add(tree, "salt", 2)
	c:add(tree, "counter", 4)
	n = c:add(tree, "length", 2)
	c:take(n)
	local inside, said = cursor(tvb, c.at - n, c.at), {}
	while inside:left() > 0 do frame(inside, tree, pinfo, said) end
	while c:left() > 0 do record(c, tree) end
	pinfo.cols.protocol = "Aldis"
	pinfo.cols.info = string.format("node %d to %s: %s", from, to == 0 and "all" or "node " .. to, table.concat(said, ", "))
end

local function sealed(tvb, pinfo, tree)
	local c = cursor(tvb, 0, tvb:len())
	head(c, tree)
	if c:left() < 16 then error("aldis: no tag", 0) end
	c:bytes(tree, "seal.ciphertext", c:left() - 16)
	c:bytes(tree, "seal.tag", 16)
	pinfo.cols.protocol = "Aldis"
	pinfo.cols.info = "sealed"
end

function aldis.dissector(tvb, pinfo, root)
	local open = tvb:len() >= #magic and tvb(0, #magic):string() == magic
	if not open and (tvb:len() < 19 or math.floor(tvb(0, 1):uint() / 32) ~= 1) then return 0 end
	local tree = root:add(aldis, tvb(), open and "Aldis, in clear" or "Aldis, sealed")
	local ok, why = pcall(open and inClear or sealed, tvb, pinfo, tree)
	if not ok then tree:add_proto_expert_info(malformed, tostring(why)) end
	return tvb:len()
end

aldis:register_heuristic("udp", function(tvb, pinfo, root)
	if tvb:len() < #magic or tvb(0, #magic):string() ~= magic then return false end
	aldis.dissector(tvb, pinfo, root)
	return true
end)

local at = ""
local function ports()
	local udp = DissectorTable.get("udp.port")
	if at ~= "" then udp:remove(at, aldis) end
	at = tostring(aldis.prefs.ports)
	if at ~= "" then udp:add(at, aldis) end
end
aldis.prefs_changed = ports
ports()
