// Package redact replaces secrets in the output of workers.
//
// A Redactor knows values that it is given, and it recognizes secrets by their
// form: JSON Web Tokens of one issuer, the signature and the credential of a
// presigned URL, and the bucket keys in a printed environment. It finds a value of at
// least 12 bytes also in Base64, alone or within encoded text such as "user:value",
// where at most four characters at each end of it remain. It cannot recognize a secret
// that the worker has transformed otherwise, or Base64 with line breaks within a value.
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

// Mask replaces a secret.
const Mask = "[redacted]"

// minSecret is the least length of a value that is masked wherever it occurs. A
// shorter value may occur in ordinary text.
const minSecret = 12

// The window bounds the memory of a Writer. If longer text may be the start of a secret,
// the Writer holds back only its end.
const (
	window   = 64 << 10
	lookback = 8 << 10
)

const (
	jwtForm       = `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`
	presignedForm = `X-Amz-(?:Signature|Credential|Security-Token)(?:=|%3D)[^&\s"'\\<>]+`
	bucketForm    = `(?:R2|AWS)_(?:SECRET_ACCESS_KEY|ACCESS_KEY_ID)"?[=:][^\s,}]+`
)

// formStarts are the strings of which each of the forms begins with one.
var formStarts = []string{"eyJ", "X-Amz-", "R2_", "AWS_"}

// Redactor finds secrets. The zero value finds none; New makes one. It is safe
// for concurrent use.
type Redactor struct {
	forms  *regexp.Regexp
	issuer string
	// values are the encodings of the given values.
	values []string
	// starts are the strings of which every secret begins with one.
	starts []string
}

// New returns a Redactor for the tokens of an issuer and for the given values,
// also as they appear in a URL, in JSON and in Base64. It ignores values of fewer than 12
// bytes and those with white space.
func New(issuer string, secrets ...string) *Redactor {
	r := &Redactor{issuer: issuer}
	for _, s := range secrets {
		if len(s) >= minSecret && !strings.ContainsAny(s, " \t\r\n") {
			r.add(s)
		}
	}
	return r.compile()
}

// Naming returns a Redactor that also masks values that their owner has named as
// secrets, whatever their length, and each line of a value with several lines. It
// ignores empty lines.
func (r *Redactor) Naming(values ...string) *Redactor {
	named := &Redactor{issuer: r.issuer, values: slices.Clone(r.values)}
	for _, value := range values {
		for line := range strings.Lines(value) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				named.add(line)
			}
		}
	}
	return named.compile()
}

// add adds the forms of a value: as it is, in a URL, in JSON, and in Base64.
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

// inBase64 returns the characters of Base64 that depend on the value alone, for each of
// the three places that its first byte can have in a group of three.
func inBase64(value string) (forms []string) {
	for before := range 3 {
		text := append(make([]byte, before), value...)
		first := (8*before + 5) / 6 // the characters with bits of what is before
		last := 8 * len(text) / 6   // the characters without bits of what follows
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, alphabet.EncodeToString(text)[first:last])
		}
	}
	return forms
}

// compile makes the expression of all forms.
func (r *Redactor) compile() *Redactor {
	// The longest alternative comes first, because one secret may contain another.
	slices.SortFunc(r.values, func(a, b string) int { return len(b) - len(a) })
	forms := make([]string, 0, len(r.values)+3)
	for _, value := range r.values {
		forms = append(forms, regexp.QuoteMeta(value))
	}
	forms = append(forms, jwtForm, presignedForm, bucketForm)
	r.forms = regexp.MustCompile(strings.Join(forms, "|"))
	r.starts = append(slices.Clone(r.values), formStarts...)
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

// span is a secret in a text, and what replaces it.
type span struct {
	start, end int
	mask       []byte
}

// find returns the secrets in order.
func (r *Redactor) find(text []byte) []span {
	if r.forms == nil {
		return nil
	}
	var list []span
	begin := firstOf(r.starts, text)
	for _, at := range r.forms.FindAllIndex(text[begin:], -1) {
		at[0], at[1] = at[0]+begin, at[1]+begin
		if s := text[at[0]:at[1]]; !bytes.HasPrefix(s, []byte("eyJ")) || r.issued(s) {
			list = append(list, span{at[0], at[1], maskOf(s)})
		}
	}
	return list
}

// firstOf returns where the first of the strings is in a text; the length of the text without
// one. It is a hundred times faster than an expression of them.
func firstOf(starts []string, text []byte) int {
	first := len(text)
	for _, start := range starts {
		if at := bytes.Index(text[:min(len(text), first+len(start)-1)], []byte(start)); at >= 0 {
			first = at
		}
	}
	return first
}

// maskOf keeps the name in front of a value.
func maskOf(secret []byte) []byte {
	for _, name := range formStarts[1:] {
		if i := bytes.IndexAny(secret, "=:%"); i > 0 && bytes.HasPrefix(secret, []byte(name)) {
			return append(slices.Clone(secret[:i+1]), Mask...)
		}
	}
	return []byte(Mask)
}

// issued reports whether a token has the issuer. A token whose claims cannot be
// read is treated as one, because a cut may have damaged it.
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

// shortStart is the greatest length of an incomplete one of formStarts.
const shortStart = len("X-Amz")

// unfinished matches the end of a text that may be the start of a secret with a known
// form.
var unfinished = regexp.MustCompile(`(?:eyJ[A-Za-z0-9_.-]*|ey?|X-Amz-[^&\s"'\\<>]*|X(?:-(?:A(?:mz?)?)?)?|` +
	`(?:R2|AWS)_[^\s,}]*|R2?|A(?:WS?)?)$`)

// begun returns the start of a possible secret that continues beyond the text; the length
// of the text if no secret is possible there.
func (r *Redactor) begun(text []byte) int {
	if r.forms == nil {
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

// Writer masks the secrets in a stream, also those that are split over several writes. It
// holds back text that may be the start of a secret, at most 64 KiB. It is not safe for
// concurrent use.
type Writer struct {
	redactor *Redactor
	to       io.Writer
	held     []byte
	inSecret bool // the text written last was the begin of a secret
}

// Writer returns a Writer to w. Close writes what it holds back.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{redactor: r, to: w} }

// Write masks and forwards p. The error is that of the underlying writer.
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

// Held returns the length of the text that is held back.
func (w *Writer) Held() int { return len(w.held) }

// Close forwards the text that is held back. It does not close the underlying
// writer.
func (w *Writer) Close() error { return w.forward(len(w.held)) }

// forward writes the masked text up to cut, or up to the secret at cut.
func (w *Writer) forward(cut int) error {
	for _, s := range w.redactor.find(w.held) {
		if s.start >= cut || s.end <= cut {
			continue
		}
		if cut = s.start; cut > 0 {
			break
		}
		// The secret fills the window. What follows belongs to it.
		w.held, w.inSecret = w.held[:0], true
		_, err := w.to.Write(s.mask)
		return err
	}
	text := w.redactor.Bytes(w.held[:cut])
	w.held = append(w.held[:0], w.held[cut:]...)
	_, err := w.to.Write(text)
	return err
}

// skip drops the rest of a secret whose begin was masked.
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
