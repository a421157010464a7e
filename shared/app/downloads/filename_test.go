package downloads

import (
	"mime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDisposition(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, file, want string }{
		{"plain", "a-collection.xml", `attachment; filename="a-collection.xml"`},
		{"spaces", "my file.xml", `attachment; filename="my file.xml"`},
		{"other letters", "Συλλογή é.xml", `attachment; filename="_______ _.xml"; filename*=UTF-8''%CE%A3%CF%85%CE%BB%CE%BB%CE%BF%CE%B3%CE%AE%20%C3%A9.xml`},
		{"a percent sign", "100%.xml", `attachment; filename="100_.xml"; filename*=UTF-8''100%25.xml`},
		{"a quote", `a"; filename="b.xml`, `attachment; filename="a_ filename=b.xml"`},
		{"a new header", "a.xml\r\nSet-Cookie: x=1", `attachment; filename="a.xmlSet-Cookie_ x=1"`},
		{"a path", "../../etc/passwd", `attachment; filename="passwd"`},
		{"a path of Windows", `C:\temp\a.xml`, `attachment; filename="a.xml"`},
		{"hidden", "...xml", `attachment; filename="xml"`},
		{"right-to-left text", "a\u202Elmx.exe", `attachment; filename="almx.exe"`},
		{"empty", "", `attachment; filename="task.xml"`},
		{"only removed characters", "\x00/..", `attachment; filename="task.xml"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := disposition(row.file, "task"); got != row.want {
				t.Errorf("got\n%s, want\n%s", got, row.want)
			}
		})
	}
}

func FuzzDisposition(f *testing.F) {
	for _, seed := range []string{"a.xml", "é\"\r\n", "../x", strings.Repeat("é", 300), "\xff\xfe", "%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		text := disposition(file, "task")
		kind, params, err := mime.ParseMediaType(text)
		if err != nil || kind != "attachment" || len(params) != 1 {
			t.Fatalf("got %q (%v), want an attachment with a file name", text, err)
		}
		name := params["filename"]
		if name == "" || len(name) > 255 || !utf8.ValidString(name) || strings.ContainsAny(name, "/\\\r\n\x00\"") {
			t.Errorf("got file name %q, want a safe name of at most 255 bytes", name)
		}
		for i := range len(text) {
			if text[i] < ' ' || text[i] > '~' {
				t.Fatalf("got byte %#x in the header, want printable ASCII", text[i])
			}
		}
	})
}
