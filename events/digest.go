package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Digest returns the digest of a JSON document: "sha256:" and the hexadecimal SHA-256 of its
// canonical form (RFC 8785). It returns an error if the document has no canonical form, such as
// one with a number beyond the range of a double.
func Digest(document []byte) (string, error) {
	canonical, err := transform(document)
	if err != nil {
		return "", fmt.Errorf("the document has no canonical form: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
