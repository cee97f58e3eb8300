// Package profiles holds one data file per link, with where its numbers came from. internal/link/profile reads them.
package profiles

import "embed"

// Files are the profiles as written, comments included; the name of a file is the name of the profile and ".toml".
//
//go:embed *.toml
var Files embed.FS
