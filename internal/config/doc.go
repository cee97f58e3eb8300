// Package config reads the gateway's configuration (TOML 1.0, strict) and the net's key file, and answers with every
// mistake at once: file, line, key, and what to do about it. One edit then mends the file.
//
// Times are durations with a unit ("20s"), addresses are "ip:port". Relative paths count from the directory of the
// configuration file. The format of a key file is that of internal/link/seal, profiles are those of internal/link/profile.
package config
