package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
)

// The supported parts of a CID, by the multiformats table.
const (
	cidVersion1 = 0x01
	codecRaw    = 0x55
	hashSHA256  = 0x12
)

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// digestOf returns the sha2-256 of the bytes of a CID. Only a CIDv1 in base 32 of the
// raw codec has one. For any other CID (a CIDv0 Qm…, UnixFS or CBOR blocks, other
// hashes, other bases) the served bytes cannot be checked, and it returns false.
func digestOf(cid string) ([]byte, bool) {
	if !strings.HasPrefix(cid, "b") {
		return nil, false
	}
	raw, err := base32Lower.DecodeString(cid[1:])
	if err != nil {
		return nil, false
	}
	for _, want := range []uint64{cidVersion1, codecRaw, hashSHA256, sha256.Size} {
		got, n := binary.Uvarint(raw)
		if n <= 0 || got != want {
			return nil, false
		}
		raw = raw[n:]
	}
	return raw, len(raw) == sha256.Size
}

// matches reports whether sum is the digest of the CID, or the CID has none.
func matches(cid string, sum []byte) bool {
	want, ok := digestOf(cid)
	return !ok || bytes.Equal(want, sum)
}

// plausibleCID reports whether a CID is safe as a path segment of a URL.
func plausibleCID(cid string) bool {
	if cid == "" || len(cid) > 256 {
		return false
	}
	for _, c := range cid {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
