// Package config reads the gateway's configuration (TOML 1.0, strict) and the net's key file. It reports every mistake
// at once, with file, line, key and remedy, so that one edit mends the file. docs/configure.md lists the keys.
//
// Times are durations with a unit ("20s"), addresses are "ip:port". Relative paths count from the directory of the
// configuration file. The format of a key file is that of internal/link/seal, profiles are those of internal/link/profile.
package config
