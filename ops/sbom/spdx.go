package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// product is the package whose bill this is.
type product struct {
	version, arch string
	made          time.Time
}

// document is an SPDX 2.3 document as its JSON schema has it.
type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name      string      `json:"name"`
	ID        string      `json:"SPDXID"`
	Version   string      `json:"versionInfo,omitempty"`
	Location  string      `json:"downloadLocation"`
	Analyzed  bool        `json:"filesAnalyzed"`
	Concluded string      `json:"licenseConcluded"`
	Declared  string      `json:"licenseDeclared"`
	Copyright string      `json:"copyrightText"`
	Purpose   string      `json:"primaryPackagePurpose,omitempty"`
	Checksums []checksum  `json:"checksums,omitempty"`
	Refs      []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const unknown = "NOASSERTION"

// document is the bill: the program, what is in its binary, and the libraries that it loads. The same binary gives the
// same document.
func (p product) document(info *debug.BuildInfo, libraries []string) document {
	name := "aldis-" + path.Base(info.Path)
	d := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name + "-" + p.version + "-" + p.arch,
		Creation: creation{p.made.Format(time.RFC3339), []string{"Tool: aldis-sbom"}},
	}
	program := newPackage(name, p.version)
	program.Concluded, program.Declared, program.Purpose = "Apache-2.0", "Apache-2.0", "APPLICATION"
	d.Packages = []spdxPackage{program}
	d.relate(d.ID, "DESCRIBES", program.ID)
	add := func(kind string, k spdxPackage) {
		k.Purpose = "LIBRARY"
		d.Packages = append(d.Packages, k)
		d.relate(program.ID, kind, k.ID)
	}
	std := newPackage("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	std.Refs = goModule("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	std.Declared = "BSD-3-Clause"
	add("STATIC_LINK", std)
	for _, m := range info.Deps {
		k := newPackage(m.Path, m.Version)
		k.Refs = goModule(m.Path, m.Version)
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && m.Sum != "" {
			k.Checksums = []checksum{{"SHA256", hex.EncodeToString(sum)}} // of the module's files, as go.sum has it
		}
		add("STATIC_LINK", k)
	}
	for _, soname := range libraries {
		add("DYNAMIC_LINK", newPackage(soname, ""))
	}
	hash := sha256.New()
	for _, k := range d.Packages {
		fmt.Fprintln(hash, k.Name, k.Version, k.Checksums)
	}
	d.Namespace = fmt.Sprintf("urn:aldis:sbom:%s:%s:%x", p.version, p.arch, hash.Sum(nil)[:8])
	return d
}

func (d *document) relate(from, kind, to string) {
	d.Relationships = append(d.Relationships, relationship{from, kind, to})
}

// notInID is what an SPDX identifier may not have.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func newPackage(name, version string) spdxPackage {
	return spdxPackage{
		Name: name, ID: "SPDXRef-" + notInID.ReplaceAllString(name, "-"), Version: version,
		Location: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown,
	}
}

// goModule names a module as vulnerability scanners look for it.
func goModule(path, version string) []reference {
	return []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}}
}
