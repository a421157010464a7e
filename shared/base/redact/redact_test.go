package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/base/redact"
)

// token returns a JSON Web Token of an issuer.
func token(issuer string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"ES256","kid":"k1"}`)) + "." + encode([]byte(`{"iss":"`+issuer+`","sub":"task-1"}`)) + ".c2lnbmF0dXJl_-"
}

const bucketKey = "0123456789abcdefSECRET+/="

func TestBytes(t *testing.T) {
	t.Parallel()
	ours, theirs := token("sortie"), token("other")
	r := redact.New("sortie", bucketKey, "short", "")
	for name, row := range map[string]struct{ text, want string }{
		"no secret":         {"line 1\nline 2\n", "line 1\nline 2\n"},
		"value":             {"key " + bucketKey + ".", "key [redacted]."},
		"value in a URL":    {"?k=0123456789abcdefSECRET%2B%2F%3D&x=1", "?k=[redacted]&x=1"},
		"short value":       {"short", "short"},
		"own token":         {"Bearer " + ours + "\n", "Bearer [redacted]\n"},
		"token of another":  {"Bearer " + theirs, "Bearer " + theirs},
		"token in a URL":    {"CALLBACK_URL=https://x.test/callback/t?token=" + ours, "CALLBACK_URL=https://x.test/callback/t?token=[redacted]"},
		"damaged token":     {"eyJhbGciOiJF.eyJpc3MiOiJzb3J0", "[redacted]"},
		"presigned URL":     {"PUT https://b.test/k?X-Amz-Credential=AK%2F2025&X-Amz-Date=1&X-Amz-Signature=00ff ok", "PUT https://b.test/k?X-Amz-Credential=[redacted]&X-Amz-Date=1&X-Amz-Signature=[redacted] ok"},
		"presigned in JSON": {`{"url":"https://b.test/k?X-Amz-Credential=AK\u0026X-Amz-Signature=00ff","key":"k"}`, `{"url":"https://b.test/k?X-Amz-Credential=[redacted]\u0026X-Amz-Signature=[redacted]","key":"k"}`},
		"environment":       {"R2_SECRET_ACCESS_KEY=abc\nR2_ACCESS_KEY_ID=def\nR2_BUCKET=b", "R2_SECRET_ACCESS_KEY=[redacted]\nR2_ACCESS_KEY_ID=[redacted]\nR2_BUCKET=b"},
	} {
		if got := string(r.Bytes([]byte(row.text))); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
	if got := (&redact.Redactor{}).Bytes([]byte(ours)); string(got) != ours {
		t.Errorf("zero value: got %s, want the text unchanged", got)
	}
}

// TestWriterMasksSecretsThatAreSplit checks that a Writer has the same result as Bytes, wherever
// the text is split.
func TestWriterMasksSecretsThatAreSplit(t *testing.T) {
	t.Parallel()
	r := redact.New("sortie", bucketKey)
	text := "a " + token("sortie") + "\n" + bucketKey + " X-Amz-Signature=00ff00ff b\r\n" + token("other") + " end"
	want := string(r.Bytes([]byte(text)))
	rapid.Check(t, func(t *rapid.T) {
		var got bytes.Buffer
		w := r.Writer(&got)
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if written, err := w.Write(rest[:n]); written != n || err != nil {
				t.Fatalf("got %d, %v, want %d", written, err, n)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Fatalf("got %q, want %q", got.String(), want)
		}
	})
}

// TestWriterMasksSecretsInLongText masks secrets in text without white space that is longer than
// the window.
func TestWriterMasksSecretsInLongText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	huge := token("sortie") + strings.Repeat("s", 300<<10)
	for name, text := range map[string]string{
		"at the end":  long + "=" + token("sortie"),
		"in between":  long + "=" + bucketKey + "." + long,
		"huge secret": "a=" + huge + "\nend",
		"only":        huge,
	} {
		var got bytes.Buffer
		w := redact.New("sortie", bucketKey).Writer(&got)
		for rest := text; rest != ""; {
			n := min(len(rest), 1000)
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{bucketKey, token("sortie"), "c2lnbmF0dXJl", "ssss"} {
			if strings.Contains(got.String(), secret) {
				t.Errorf("%s: got %s in the output", name, secret)
			}
		}
		if strings.HasSuffix(text, "\nend") != strings.HasSuffix(got.String(), "\nend") || !strings.Contains(got.String(), redact.Mask) {
			t.Errorf("%s: got %.60q... of %d bytes", name, got.String(), got.Len())
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestWriterReturnsTheErrorOfTheTarget(t *testing.T) {
	t.Parallel()
	if _, err := redact.New("sortie").Writer(brokenWriter{}).Write([]byte("a ")); err == nil {
		t.Error("got no error, want that of the writer")
	}
}

// TestSecretsAfterLookalikes checks that a secret is masked after text that looks like the start
// of one.
func TestSecretsAfterLookalikes(t *testing.T) {
	t.Parallel()
	r := redact.New("sortie", bucketKey)
	for _, before := range []string{"", "eyJ ", "AWS_REGION R2_ X-Amz-Date=1&", bucketKey[:11] + " ", strings.Repeat("plain ", 10000)} {
		for _, secret := range []string{bucketKey, token("sortie"), "R2_ACCESS_KEY_ID=abc", "X-Amz-Signature=abc"} {
			got := string(r.Bytes([]byte(before + secret + " " + secret)))
			if !strings.HasPrefix(got, before) || strings.Count(got, redact.Mask) != 2 {
				t.Errorf("%.20q and %.20q: got %.80q, want both secrets masked", before, secret, got)
			}
		}
	}
}

// BenchmarkWriter masks output without secrets, in writes of the size of a read from a pipe.
func BenchmarkWriter(b *testing.B) {
	text := []byte(strings.Repeat("2026-11-26T03:00:00Z level=INFO msg=\"read a record\" n=1\n", 600))
	w := redact.New("sortie", bucketKey, "another-secret-value").Writer(io.Discard)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := w.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzBytes(f *testing.F) {
	r := redact.New("sortie", bucketKey)
	for _, seed := range []string{"", bucketKey + bucketKey, token("sortie") + token("sortie"), "eyJ.eyJ.", "X-Amz-Signature=", "R2_ACCESS_KEY_ID=eyJhbGciOiJ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := r.Bytes([]byte(text))
		if bytes.Contains(got, []byte(bucketKey)) {
			t.Errorf("%q: got %q", text, got)
		}
		if quoted, err := json.Marshal(text); err == nil && bytes.Contains(r.Bytes(quoted), []byte(bucketKey)) {
			t.Errorf("%s: got the secret in JSON", quoted)
		}
	})
}

// TestNamedValueIsMasked checks that values of Naming are masked line by line, whatever their
// length.
func TestNamedValueIsMasked(t *testing.T) {
	t.Parallel()
	r := redact.New("sortie", "bucket-secret-key").Naming("4711", "-----BEGIN-----\nab cd\n", `a"b`, "")
	for text, want := range map[string]string{
		"pin 4711.": "pin [redacted].", "ab cd": "[redacted]", "ab": "ab", `{"k":"a\"b"}`: `{"k":"[redacted]"}`,
		"bucket-secret-key": "[redacted]", "none": "none",
	} {
		if got := string(r.Bytes([]byte(text))); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestWriterHoldsBackLittle checks that only the possible start of a secret is held back.
func TestWriterHoldsBackLittle(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"done": "don", "hello": "hello", "Enter your name:": "Enter your name:", "x 0123456789abc": "x ",
		"a eyJhbGciOi": "a ", "u?X-Amz-Sig": "u?", "R2_SECRET_ACCESS_KEY=ab": "", "a b c": "a b c", "pass wo": "",
	} {
		var got bytes.Buffer
		w := redact.New("sortie", bucketKey).Naming("pass word").Writer(&got)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got.String() != want || w.Held() != len(text)-len(want) {
			t.Errorf("%q: got %q with %d bytes held back, want %q", text, got.String(), w.Held(), want)
		}
	}
}

// TestWriterMasksSplitPhrase checks that a value of Naming with a space is masked, wherever it is
// split.
func TestWriterMasksSplitPhrase(t *testing.T) {
	t.Parallel()
	for cut := range len("a pass word b") {
		var got bytes.Buffer
		w := redact.New("sortie").Naming("pass word").Writer(&got)
		for _, part := range []string{"a pass word b"[:cut], "a pass word b"[cut:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || got.String() != "a [redacted] b" {
			t.Errorf("split at %d: got %q, %v, want the phrase masked", cut, got.String(), err)
		}
	}
}

// TestBase64IsMasked encodes a secret with text of different lengths before and after it.
func TestBase64IsMasked(t *testing.T) {
	t.Parallel()
	const secret = "s3cr?t~>va\xc3\xbcue" // its Base64 has + and /, or - and _ in the alphabet for URLs
	named := redact.New("sortie").Naming(secret, "short")
	for name, r := range map[string]*redact.Redactor{"value": redact.New("sortie", secret), "named": named} {
		for _, before := range []string{"", "u", "us", "user:", "user::"} {
			for _, after := range []string{"", "\n", "ab", "abc"} {
				for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
					text := e.EncodeToString([]byte(before + secret + after))
					got := string(r.Bytes([]byte("Basic " + text + " end")))
					left := strings.TrimSuffix(strings.TrimPrefix(got, "Basic "), " end")
					if !strings.Contains(left, redact.Mask) || len(left) > len(redact.Mask)+4*(len(before)+len(after))/3+8 {
						t.Errorf("%s in %q and %q: got %q for %q, want it masked", name, before, after, got, text)
					}
				}
			}
		}
		if text := base64.StdEncoding.EncodeToString([]byte("short is fine here")); string(r.Bytes([]byte(text))) != text {
			t.Errorf("%s: got %q masked, want other text unchanged", name, text)
		}
	}
}

// TestSecretsAreThoseOfOneExpression checks that find has the same result as one regular
// expression of all values and forms.
func TestSecretsAreThoseOfOneExpression(t *testing.T) {
	t.Parallel()
	r := redact.New("sortie", bucketKey, "abcabcabcabcabc").Naming("ab", "abc", "b", "R2_ACCESS", "eyJ")
	parts := []string{
		bucketKey, "abcabcabcabcabc", "abcabcabcabcab", "a", "b", "c", "ab", "eyJ", "eyJeyJhbGciOiJF", ".", token("sortie"), token("other"), " ", "\n", "=", "&",
		"X-Amz-Signature=", "X-Amz-Security-Token%3D", "R2_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY\":", "R2_", "\xff", "ä",
		base64.StdEncoding.EncodeToString([]byte("user:" + bucketKey)),
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), ""))
		if got, want := r.Find(text), r.FindByExpression(text); !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
	})
}

// TestValueThatIsNoText checks that a value that is not UTF-8 is masked.
func TestValueThatIsNoText(t *testing.T) {
	t.Parallel()
	const value = "secret\xff\xfevalue"
	if got := redact.New("sortie").Naming(value).Bytes([]byte("a " + value + " b")); string(got) != "a [redacted] b" {
		t.Errorf("got %q, want the value masked", got)
	}
}

// BenchmarkNew creates a redactor with four secrets and masks a short log.
func BenchmarkNew(b *testing.B) {
	log := []byte("exported 72 entities in 3 s\nkey " + bucketKey + "\n")
	b.ReportAllocs()
	for b.Loop() {
		redact.New("sortie", "0123456789abcdef0123456789abcdef", bucketKey).Naming("postgres://user:password@db.example/app", "a-token-of-a-service").Bytes(log)
	}
}
