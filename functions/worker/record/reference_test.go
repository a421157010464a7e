package record

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func parse(body string) (Reference, error) {
	return ParseReference("page.ref.json", strings.NewReader(body), int64(len(body)))
}

func ocr(t *testing.T, ref Reference) string {
	t.Helper()
	text, err := io.ReadAll(ref.OCR.Open())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseReference(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, body, filename, size, ocr string }{
		{"url alone", `{"url":"u"}`, "page", "", ""},
		{"all", ` {"url":"u","ipfs_cid":"c","type":"t","size":12,"filename":"f","ocr":"o"} `, "f", "12", "o"},
		{"byte order mark", "\ufeff" + `{"url":"u","ocr":"x"}`, "page", "", "x"},
		{"nested others", `{"x":{"url":"no","y":[1,"]}",{"z":null}]},"url":"u","n":[],"ocr":"x"}`, "page", "", "x"},
		{"escapes", `{"url":"u","ocr":"a\n\t\"\\\/\b\f\u00e9\ud834\udd1e\ud834x\u12"}`, "page", "", "a\n\t\"\\/\b\fé𝄞\uFFFDx\\u12"},
		{"size is no number", `{"url":"u","size":"big"}`, "page", "", ""},
		{"OCR is no text", `{"url":"u","ocr":{"a":1}}`, "page", "", ""},
		{"OCR twice", `{"url":"u","ocr":"first","ocr":"last"}`, "page", "", "last"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ref, err := parse(row.body)
			if err != nil || ref.URL != "u" || ref.Filename != row.filename || ref.Size != row.size {
				t.Errorf("ParseReference = %+v, %v", ref, err)
			}
			if got := ocr(t, ref); got != row.ocr {
				t.Errorf("OCR = %q, want %q", got, row.ocr)
			}
		})
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", "null", "[]", `"x"`, "{", `{"url"`, `{"url":`, `{"url":"u"`, `{"url":"u",}`, `{"url":"u"}x`, `{"url":"u"]`, `{url:"u"}`,
		`{"ocr":"no url"}`, `{"url":""}`, `{"url":"u","ocr":"open}`, `{"url":"u" "x":1}`, `{"a":[1,2}`, `{"a":}`, `{"url":,}`,
	} {
		if ref, err := parse(body); err == nil {
			t.Errorf("ParseReference(%s) = %+v", body, ref)
		}
	}
}

func TestLongOCRIsReadInPieces(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é\n\"𝄞", 50_000)
	body, _ := json.Marshal(map[string]string{"url": "u", "ocr": long})
	ref, err := ParseReference("p", bytes.NewReader(body), int64(len(body)))
	if err != nil || ocr(t, ref) != long {
		t.Errorf("the text came out differently: %v", err)
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": true, " \n\t\x00\u00a0": true, " x": false, strings.Repeat(" ", 5000) + ".": false} {
		if got := PlainText(strings.NewReader(text), int64(len(text))).Blank(); got != want {
			t.Errorf("Blank(%q) = %v", text, got)
		}
	}
}

// FuzzParseReference checks that ParseReference returns the reference that encoding/json
// decodes.
func FuzzParseReference(f *testing.F) {
	f.Add([]byte(`{"url":"u","ocr":"a\u0000\ud800b","size":3}`))
	f.Add([]byte(`{"x":[{"y":"}"}],"url":"u","filename":null}`))
	f.Add([]byte("\xef\xbb\xbf{\"url\":\"\\\"\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		ref, err := ParseReference("p", bytes.NewReader(body), int64(len(body)))
		var got []byte
		if err == nil {
			if got, err = io.ReadAll(ref.OCR.Open()); err != nil {
				t.Fatal(err)
			}
		}
		keys := map[string]json.RawMessage{}
		if !utf8.Valid(body) || json.Unmarshal(body, &keys) != nil {
			return
		}
		var want string
		if json.Unmarshal(keys["ocr"], &want) != nil || ref.URL == "" {
			return
		}
		if string(got) != want && strings.Count(string(body), "ocr") == 1 {
			t.Errorf("OCR = %q, want %q", got, want)
		}
	})
}
