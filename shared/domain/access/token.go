package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Default is the tenant and the project of tokens for which no other one is configured.
const Default = "default"

// MinLength is the minimum length of a token in characters.
const MinLength = 16

// Token is the record of a client token.
type Token struct {
	// Name identifies the record in its list: 1 to 63 lower-case letters, digits,
	// dots, hyphens and underscores.
	Name string `json:"name"`
	// SHA256 is the digest of the token's text, 64 hexadecimal digits.
	SHA256 string `json:"sha256"`
	// Tenant and Project own the resources that the token creates. The token can access
	// only resources of Tenant.
	Tenant  string `json:"tenant"`
	Project string `json:"project"`
	// Scopes are the token's permissions, at least one.
	Scopes []Scope `json:"scopes"`
	// ExpiresAt is the first time at which the token is invalid; the zero time
	// means that it does not expire.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Grant limits the inference tasks of the token.
	Grant
}

// Expired reports whether the token is invalid at now because of its age.
func (t Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }

// Fingerprint returns the first 6 digits of the token's digest, for logs.
func (t Token) Fingerprint() string { return t.SHA256[:min(len(t.SHA256), 6)] }

// Subject returns "token:" and the fingerprint. Records, logs and tickets identify the
// token's holder by it.
func (t Token) Subject() string { return "token:" + t.Fingerprint() }

// Full returns the record of a token with all scopes that does not expire.
func Full(name, text, tenant, project string) Token {
	return Token{Name: name, SHA256: Digest(text), Tenant: tenant, Project: project, Scopes: Scopes()}
}

// Digest returns the SHA-256 of a token's text in hexadecimal.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Find returns the record of the token with this text. It compares the digest with every
// record in constant time. It does not check whether the record has expired.
func Find(tokens []Token, text string) (found Token, ok bool) {
	digest := []byte(Digest(text))
	for _, t := range tokens {
		if subtle.ConstantTimeCompare([]byte(t.SHA256), digest) == 1 {
			found, ok = t, true
		}
	}
	return found, ok
}

// Holder returns the first record of the tenant that has this subject and has not expired.
// Two tokens have the same subject with a probability of 1 in 16 million.
func Holder(tokens []Token, tenant, subject string, now time.Time) (held Token, ok bool) {
	for _, t := range tokens {
		if t.Tenant == tenant && t.Subject() == subject && !t.Expired(now) {
			return t, true
		}
	}
	return Token{}, false
}

// prefix is the prefix of generated tokens. Scanners for leaked secrets recognise it.
const prefix = "sortie_"

// New returns the text of a new token with 256 random bits.
func New(random io.Reader) (string, error) {
	var bits [32]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", fmt.Errorf("cannot generate a token: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(bits[:]), nil
}

// CheckText returns an error unless text can be a client token: printable ASCII without
// spaces and commas, at least MinLength characters. The error does not contain the text.
func CheckText(text string) error {
	switch {
	case text == "":
		return errors.New("empty token")
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || c == ',' }):
		return errors.New("invalid character in a token, want printable ASCII without spaces and commas")
	case len(text) < MinLength:
		return fmt.Errorf("token of %d characters, want at least %d", len(text), MinLength)
	}
	return nil
}

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	tenantForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Validate returns all problems of a list of records, each with its record and field. Names
// and digests must be unique.
func Validate(tokens []Token) (problems []error) {
	for i, t := range tokens {
		wrong := func(field, format string, args ...any) {
			problems = append(problems, fmt.Errorf("records[%d].%s: %s", i, field, fmt.Sprintf(format, args...)))
		}
		if !nameForm.MatchString(t.Name) {
			wrong("name", "malformed %q, want 1 to 63 lower-case letters, digits, dots, hyphens and underscores", t.Name)
		}
		if !digestForm.MatchString(t.SHA256) {
			wrong("sha256", "malformed digest, want 64 lower-case hexadecimal digits")
		}
		for _, is := range [][2]string{{"tenant", t.Tenant}, {"project", t.Project}} {
			if !tenantForm.MatchString(is[1]) {
				wrong(is[0], "malformed %q, want 1 to 63 lower-case letters, digits and hyphens", is[1])
			}
		}
		if len(t.Scopes) == 0 {
			wrong("scopes", "missing, want some of %v", Scopes())
		}
		for n, s := range t.Scopes {
			switch {
			case !s.Known():
				wrong("scopes", "unknown scope %q, want one of %v", s, Scopes())
			case slices.Contains(t.Scopes[:n], s):
				wrong("scopes", "scope %q is listed twice", s)
			}
		}
		for _, problem := range t.Grant.check() {
			wrong(problem.field, "%s", problem.text)
		}
		for _, other := range tokens[:i] {
			if other.Name == t.Name {
				wrong("name", "%q is the name of two records", t.Name)
			}
			if other.SHA256 == t.SHA256 {
				wrong("sha256", "records %q and %q have the same token", other.Name, t.Name)
			}
		}
	}
	return problems
}
