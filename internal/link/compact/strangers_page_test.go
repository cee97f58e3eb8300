package compact

// The page that writeStrangers writes: the parts before and after the rows.

const strangersHead = `# What the documents of other software cost

Written by ` + "`" + `make sizes` + "`" + `; a test compares this page with the code. The messages come from generators
(internal/link/compact/strangers_test.go). They share no code, name or sentence with the generators of the model's corpus
(` + "`" + `go test -run TestStrangersAreStrangers ./internal/link/compact` + "`" + `). An unforeseen variant of a format costs more.
An unknown format costs as much as with brotli, two to ten times as much as after teaching: teach it (docs/orders.md, "Teach the gateway your formats").

## Formats

Each figure is a mean in octets, with the octet that names the codec. *First*: the first messages of 60 flows. *After another flow*: first
messages after six messages of another flow of the kind (docs/decisions/flows.md). *2nd*, *10th*: those messages of five flows. *zstd*:
first messages with zstd -19 and a dictionary of 16 KiB from 200 samples of the kind, which no receiver on a link would have.

| kind | octets | first | after another flow | 2nd | 10th | zstd |
|---|---|---|---|---|---|---|
`

const strangersTail = `
Lines of chat on the topics of these generators cost %s. Expect the second figure: its lines were written after the corpus, which therefore cannot fit them.

## Taught

First messages of two invented formats, before and after teaching up to 24 kB of 200 samples (` + "`" + `gateway corpus build` + "`" + `). Other kinds
cost the same as before (` + "`" + `go test -run TestTaughtLeavesOthersAlone ./internal/link/compact` + "`" + `).

| kind | octets | first | first, taught | zstd |
|---|---|---|---|---|
%s
## Messages from public repositories

Test fixtures, examples of standards, and logs. One half is taught, the other judged (up to 60 first messages); the two come from
different files, repositories or people. This repository has none of the messages. zstd has the best of three dictionaries made from the
taught half. To judge your own, put each message into a file of DIR/taught/KIND or DIR/judged/KIND:

    go test -v -run WordsOfStrangers ./internal/lab/teach -args -words DIR

| kind | octets | brotli | zstd | first | first, taught |
|---|---|---|---|---|---|
| adsb-raw | 224.2 | 121.4 | 74.3 | **108.9** | **50.1** |
| ais | 154.9 | 109.6 | 77.4 | **79.4** | **49.2** |
| ais-json | 273.9 | 173.4 | 64.1 | **50.0** | **29.7** |
| asterix | 57.5 | 60.9 | 59.9 | **56.2** | **56.2** |
| cap | 2231.7 | 881.3 | 632.3 | **569.7** | **529.4** |
| cbor | 352.6 | 175.4 | 74.1 | **126.3** | **56.5** |
| cose | 154.1 | 156.8 | 64.0 | **136.8** | **56.5** |
| cot | 699.5 | 333.5 | 159.9 | **153.6** | **101.5** |
| feed | 354.2 | 179.7 | 36.8 | **103.6** | **23.0** |
| geojson | 221.2 | 94.7 | 35.9 | **31.9** | **20.4** |
| gpsd-json | 892.6 | 259.9 | 192.7 | **135.6** | **109.8** |
| gpx | 7208.0 | 865.0 | 464.9 | **496.4** | **469.7** |
| kml | 2122.8 | 418.4 | 241.8 | **233.6** | **159.1** |
| log-line | 118.5 | 97.8 | 82.9 | **62.5** | **55.4** |
| mail | 2020.5 | 880.4 | 542.7 | **721.6** | **442.7** |
| metar-taf | 176.3 | 94.8 | 87.9 | **68.8** | **57.6** |
| nmea | 278.4 | 149.6 | 111.4 | **85.5** | **62.6** |
| nws-json | 6070.0 | 1050.0 | 448.8 | **589.3** | **271.7** |
| png | 1300.5 | 1115.4 | 944.1 | **1084.3** | **948.9** |
| radio-talk | 50.3 | 48.2 | 35.1 | **22.0** | **19.2** |
| senml-json | 225.4 | 114.0 | 39.9 | **45.2** | **17.9** |
| sensorthings | 640.4 | 173.2 | 94.2 | **96.9** | **61.8** |
| signalk | 944.9 | 258.6 | 108.2 | **132.2** | **68.9** |
| signalk-log | 66.6 | 60.9 | 55.5 | **29.6** | **29.6** |
| sms-chat | 59.8 | 53.0 | 41.3 | **28.0** | **25.1** |
| sms-chinese | 39.1 | 42.0 | 31.5 | **26.6** | **16.8** |
| soap | 643.9 | 223.9 | 97.8 | **105.8** | **50.6** |
| tak-protobuf | 744.6 | 403.9 | 264.7 | **288.3** | **198.3** |
| ubx-binary | 82.9 | 70.0 | 62.8 | **58.6** | **53.0** |
| xmpp | 183.8 | 103.5 | 48.8 | **51.3** | **28.5** |

The mean of the kinds is 0.616 of brotli's octets. Chat takes 3.75 bits a character and radio talk 3.50; after teaching up to 85 kB
they take 3.36 and 3.05. For new messages of seven kinds, teaching leaves 62 to 87 %% of the octets.
A larger built-in corpus gains little: 400 kB of free chat make chat 6 %% smaller and other kinds 0.6 %% larger.

## Long texts

Lists of employees. XML of 4 MiB takes about 3 s of processor time with AVX2, lines of text 7 s; without AVX2 two to three times that. A
gateway codes it in slices beside its other work.

| octets | coded | smaller by | deflated |
|---|---|---|---|
%s
## XML as it is written

One document of an unknown format, %s (` + "`" + `go test -v -run TestDressesCostLittle ./internal/link/compact` + "`" + `): with
a comment, CDATA, CR LF, other quotes, ISO-8859-1, a document type, and so on. The model does not read UTF-16 as XML. Of 100,000 damaged
codes (a flipped bit, a cut, an extra octet) the decoder accepted none
(` + "`" + `go test -tags long -run TestDamagedFiles ./internal/link/compact` + "`" + `).

## The model

| | |
|---|---|
| in the binary | 9.41 MB: counters 8.39, tables 0.30, corpus 0.73 |
| loading it at the start | 7 ms on a loaded machine, 1 MB of memory for all coders |
| memory of a coder | 1.5 MB, and 64 octets for each line of counters that its texts use: at most 19 MB |
| building it from the corpus (` + "`" + `gateway corpus` + "`" + `) | 11 s |

HELLOs carry the model's version. Gateways with different versions only deflate for each other.
`
