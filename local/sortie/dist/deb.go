package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" //nolint:gosec // the format of Debian
	"fmt"
	"strings"
	"time"
	"unicode"
)

// debVersion returns a version as Debian wants it: it begins with a digit, and has no hyphen,
// which would begin a revision.
func debVersion(version string) string {
	if version == "" || !unicode.IsDigit(rune(version[0])) || !strings.Contains(version, ".") {
		version = "0~" + version
	}
	return strings.ReplaceAll(version, "-", "+")
}

// deb returns a package for Debian and Ubuntu. The programs are static, so it depends on nothing.
func deb(version, processor string, entries []entry, modified time.Time) ([]byte, error) {
	var files []entry
	for _, e := range entries {
		switch {
		case e.mode&0o111 != 0:
			files = append(files, entry{"usr/bin/" + e.name, e.content, 0o755})
		case e.name == "LICENSE":
			files = append(files, entry{"usr/share/doc/sortie/copyright", e.content, 0o644})
		}
	}
	for _, e := range under(entries, "man/man1") {
		var page bytes.Buffer
		compressed := gzip.NewWriter(&page)
		if _, err := compressed.Write(e.content); err != nil {
			return nil, err
		}
		if err := compressed.Close(); err != nil {
			return nil, err
		}
		files = append(files, entry{"usr/share/man/man1/" + e.name + ".gz", page.Bytes(), 0o644})
	}
	for _, e := range under(entries, "completions") {
		files = append(files, entry{map[string]string{
			"sortie.bash": "usr/share/bash-completion/completions/sortie",
			"_sortie":     "usr/share/zsh/vendor-completions/_sortie",
			"sortie.fish": "usr/share/fish/vendor_completions.d/sortie.fish",
		}[e.name], e.content, 0o644})
	}
	size := 0
	var sums strings.Builder
	for _, f := range files {
		size += len(f.content)
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.content), f.name) //nolint:gosec // the format of Debian
	}
	control := fmt.Sprintf(`Package: sortie
Version: %s
Architecture: %s
Maintainer: The Sortie authors <sortie@users.noreply.github.com>
Installed-Size: %d
Section: admin
Priority: optional
Homepage: https://github.com/sortie-dev/sortie
Description: serverless run orchestrator
 Sortie queues runs, starts ephemeral workers for them, monitors the workers by
 heartbeats, retries or cancels them, stores their output, and publishes events.
`, debVersion(version), processor, (size+1023)/1024)
	var inner, data bytes.Buffer
	if err := pack(&inner, "./", []entry{{"control", []byte(control), 0o644}, {"md5sums", []byte(sums.String()), 0o644}}, modified); err != nil {
		return nil, err
	}
	if err := pack(&data, "./", files, modified); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, part := range []entry{{"debian-binary", []byte("2.0\n"), 0o644}, {"control.tar.gz", inner.Bytes(), 0o644}, {"data.tar.gz", data.Bytes(), 0o644}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", part.name, modified.Unix(), 0, 0, "100644", len(part.content))
		b.Write(part.content)
		if len(part.content)%2 != 0 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}
