// Package redact replaces secrets in the output of workers.
//
// A Redactor masks the values that it is given. It also recognizes secrets by their form:
// JSON Web Tokens of one issuer, the signature and the credential of a presigned URL, and
// bucket keys in a printed environment.
//
// It also finds a value of at least 12 bytes in Base64, alone or within encoded text such
// as "user:value". At most four characters at each end of the encoded value remain. It
// cannot recognize a secret in any other encoding, or in Base64 with line breaks.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mask is the text that replaces a secret.
const Mask = "[redacted]"

// minSecret is the minimum length of a value that New accepts, in bytes. A shorter value
// may occur in ordinary text.
const minSecret = 12

// window is the maximum number of bytes that a Writer holds back. If more bytes may be the
// start of a secret, the Writer holds back only the last lookback bytes.
const (
	window   = 64 << 10
	lookback = 8 << 10
)

const (
	jwtForm       = `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`
	presignedForm = `X-Amz-(?:Signature|Credential|Security-Token)(?:=|%3D)[^&\s"'\\<>]+`
	bucketForm    = `(?:R2|AWS)_(?:SECRET_ACCESS_KEY|ACCESS_KEY_ID)"?[=:][^\s,}]+`
)

// formStarts are the prefixes of the forms. Each form begins with one of them.
var formStarts = []string{"eyJ", "X-Amz-", "R2_", "AWS_"}

// forms matches the secrets that are recognized by their form.
var forms = regexp.MustCompile(jwtForm + "|" + presignedForm + "|" + bucketForm)

// Redactor finds and masks secrets. Use New to create one; the zero value masks nothing. It
// is safe for concurrent use.
type Redactor struct {
	finds  bool
	issuer string
	// values are the given values in all encodings, longest first.
	values []string
}

// New returns a Redactor for the tokens of an issuer and for the given secrets, also in their
// encodings for URLs, JSON and Base64. It ignores secrets of fewer than 12 bytes and those
// with white space.
func New(issuer string, secrets ...string) *Redactor {
	r := &Redactor{finds: true, issuer: issuer}
	for _, s := range secrets {
		if len(s) >= minSecret && !strings.ContainsAny(s, " \t\r\n") {
			r.add(s)
		}
	}
	return r.sorted()
}

// Naming returns a copy of r that also masks values that a user has declared as secrets. They
// can have any length and contain spaces. Each line of a value is masked separately. Naming
// ignores empty lines.
func (r *Redactor) Naming(values ...string) *Redactor {
	named := &Redactor{finds: true, issuer: r.issuer, values: slices.Clone(r.values)}
	for _, value := range values {
		for line := range strings.Lines(value) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				named.add(line)
			}
		}
	}
	return named.sorted()
}

// add adds a value in all encodings: plain, for URLs, for JSON and, from 12 bytes on, in Base64.
func (r *Redactor) add(value string) {
	quoted, err := json.Marshal(value)
	if err != nil {
		return // a string always encodes
	}
	forms := []string{value, url.QueryEscape(value), string(quoted[1 : len(quoted)-1])}
	if len(value) >= minSecret {
		forms = append(forms, inBase64(value)...)
	}
	for _, form := range forms {
		if !slices.Contains(r.values, form) {
			r.values = append(r.values, form)
		}
	}
}

// inBase64 returns the Base64 characters that depend only on the value. It returns them for
// each of the three positions of its first byte in a group of three, and for both alphabets.
func inBase64(value string) (forms []string) {
	for before := range 3 {
		text := append(make([]byte, before), value...)
		first := (8*before + 5) / 6 // skip the characters with bits of preceding bytes
		last := 8 * len(text) / 6   // skip the character with bits of following bytes
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, alphabet.EncodeToString(text)[first:last])
		}
	}
	return forms
}

// sorted sorts the values by length, longest first, because one secret may contain another.
// It returns r.
func (r *Redactor) sorted() *Redactor {
	slices.SortStableFunc(r.values, func(a, b string) int { return len(b) - len(a) })
	return r
}

// Bytes returns text with every secret masked.
func (r *Redactor) Bytes(text []byte) []byte {
	var out bytes.Buffer
	last := 0
	for _, s := range r.find(text) {
		out.Write(text[last:s.start])
		out.Write(s.mask)
		last = s.end
	}
	out.Write(text[last:])
	return out.Bytes()
}

// span is the position of a secret in a text, and the text that replaces it.
type span struct {
	start, end int
	mask       []byte
}

// find returns the secrets from left to right. At the same position it prefers the longest
// value, and a value to a form. It searches each value with bytes.Index, because a regular
// expression of all values is slower and would be compiled for each run.
func (r *Redactor) find(text []byte) []span {
	if !r.finds {
		return nil
	}
	var list []span
	next := make([]int, len(r.values)) // the next position of each value
	for i, value := range r.values {
		next[i] = indexFrom(text, 0, value)
	}
	form := formFrom(text, 0)
	for at := 0; ; {
		best := form
		for i, value := range r.values {
			if next[i] < at {
				next[i] = indexFrom(text, at, value)
			}
			if next[i] < best.start || next[i] == best.start && best.isForm {
				best = found{next[i], next[i] + len(value), false}
			}
		}
		if best.start == len(text) {
			return list
		}
		if s := text[best.start:best.end]; !bytes.HasPrefix(s, []byte("eyJ")) || r.issued(s) {
			list = append(list, span{best.start, best.end, maskOf(s)})
		}
		if at = best.end; form.start < at {
			form = formFrom(text, at)
		}
	}
}

// found is the position of a match in a text. If there is no match, start is the length of the
// text.
type found struct {
	start, end int
	isForm     bool
}

// indexFrom returns the index of the first occurrence of value at or after from; the length of
// the text if there is no occurrence.
func indexFrom(text []byte, from int, value string) int {
	if at := bytes.Index(text[from:], []byte(value)); at >= 0 {
		return from + at
	}
	return len(text)
}

// formFrom returns the first secret with a known form at or after from.
func formFrom(text []byte, from int) found {
	from += firstOf(formStarts, text[from:])
	if at := forms.FindIndex(text[from:]); at != nil {
		return found{from + at[0], from + at[1], true}
	}
	return found{len(text), len(text), true}
}

// firstOf returns the lowest index at which one of starts occurs in a text; the length of the
// text if none of them occurs. It is a hundred times faster than a regular expression.
func firstOf(starts []string, text []byte) int {
	first := len(text)
	for _, start := range starts {
		if at := bytes.Index(text[:min(len(text), first+len(start)-1)], []byte(start)); at >= 0 {
			first = at
		}
	}
	return first
}

// maskOf returns the replacement of a secret: Mask. If the secret has the form NAME=value, the
// name remains.
func maskOf(secret []byte) []byte {
	for _, name := range formStarts[1:] {
		if i := bytes.IndexAny(secret, "=:%"); i > 0 && bytes.HasPrefix(secret, []byte(name)) {
			return append(slices.Clone(secret[:i+1]), Mask...)
		}
	}
	return []byte(Mask)
}

// issued reports whether a token is of the redactor's issuer. It returns true if the claims
// cannot be decoded, because the token may be truncated.
func (r *Redactor) issued(token []byte) bool {
	_, rest, _ := bytes.Cut(token, []byte("."))
	payload, _, _ := bytes.Cut(rest, []byte("."))
	var claims struct {
		Issuer string `json:"iss"`
	}
	text, err := base64.RawURLEncoding.DecodeString(string(payload))
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return true
	}
	return claims.Issuer == r.issuer
}

// shortStart is the maximum length of an incomplete prefix of a form.
const shortStart = len("X-Amz")

// unfinished matches at the end of a text what may be the start of a secret with a known form.
var unfinished = regexp.MustCompile(`(?:eyJ[A-Za-z0-9_.-]*|ey?|X-Amz-[^&\s"'\\<>]*|X(?:-(?:A(?:mz?)?)?)?|` +
	`(?:R2|AWS)_[^\s,}]*|R2?|A(?:WS?)?)$`)

// begun returns the index from which the text may be the start of an incomplete secret. It
// returns the length of the text if its end cannot be the start of a secret.
func (r *Redactor) begun(text []byte) int {
	if !r.finds {
		return len(text)
	}
	first, from := len(text), max(0, len(text)-window-lookback)
	from += min(firstOf(formStarts, text[from:]), max(0, len(text)-from-shortStart))
	if at := unfinished.FindIndex(text[from:]); at != nil {
		first = from + at[0]
	}
	for _, value := range r.values {
		for n := min(len(value)-1, len(text)); n > len(text)-first; n-- {
			if bytes.HasSuffix(text, []byte(value[:n])) {
				first = len(text) - n
				break
			}
		}
	}
	return first
}

// Writer masks the secrets in a stream, also those that are split across writes. It holds back
// text that may be the start of a secret, at most 64 KiB. It is not safe for concurrent use.
type Writer struct {
	redactor *Redactor
	to       io.Writer
	held     []byte
	inSecret bool // the rest of a masked secret may follow
}

// Writer returns a Writer that writes to w. Close writes the text that it holds back.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{redactor: r, to: w} }

// Write masks p and writes it to the underlying writer, except text that it holds back. It
// returns len(p) and the error of the underlying writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	w.skip()
	cut := w.redactor.begun(w.held)
	if len(w.held)-cut > window {
		cut = len(w.held) - lookback
	}
	if cut == 0 {
		return len(p), nil
	}
	return len(p), w.forward(cut)
}

// Held returns the number of bytes that are held back.
func (w *Writer) Held() int { return len(w.held) }

// Close masks and writes the text that is held back. It does not close the underlying
// writer.
func (w *Writer) Close() error { return w.forward(len(w.held)) }

// forward writes the masked text up to cut. If cut is within a secret, it writes only the text
// before the secret. If that secret is at the start, it writes the mask and drops the secret.
func (w *Writer) forward(cut int) error {
	for _, s := range w.redactor.find(w.held) {
		if s.start >= cut || s.end <= cut {
			continue
		}
		if cut = s.start; cut > 0 {
			break
		}
		// The secret fills the window. The following text is part of it.
		w.held, w.inSecret = w.held[:0], true
		_, err := w.to.Write(s.mask)
		return err
	}
	text := w.redactor.Bytes(w.held[:cut])
	w.held = append(w.held[:0], w.held[cut:]...)
	_, err := w.to.Write(text)
	return err
}

// skip drops the rest of a secret whose start was masked, up to white space, a quote, & or \.
func (w *Writer) skip() {
	if !w.inSecret {
		return
	}
	end := bytes.IndexAny(w.held, " \t\r\n\"'&\\")
	if end < 0 {
		w.held = w.held[:0]
		return
	}
	w.held, w.inSecret = append(w.held[:0], w.held[end:]...), false
}
