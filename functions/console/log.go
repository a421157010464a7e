package console

import (
	"strings"

	"github.com/sortie-dev/sortie/shared/contract"
)

// logView is the end of a log as the page of a run shows it.
type logView struct {
	// Path is the path of the whole log in the API.
	Path    string
	Attempt int
	Ended   bool
	// Skipped is the number of lines before the first one.
	Skipped int
	Lines   []logLine

	// after is the number of the last line that items has returned.
	after int
	open  map[string]*strings.Builder
	style map[string]string
}

// logLine is a line of a log.
type logLine struct {
	Number int
	Stream string
	Parts  []part
}

// logLines is the largest number of lines that a page shows.
const logLines = 1000

// lineLimit is the largest size of a line in bytes. The rest is left out.
const lineLimit = 16 << 10

// add adds a piece of output. Lines of different streams do not mix.
func (l *logView) add(piece contract.LogLine) {
	if l.open == nil {
		l.open, l.style = map[string]*strings.Builder{}, map[string]string{}
	}
	if piece.Cut > 0 {
		l.line(piece.Stream, "… "+size(piece.Cut)+" are missing here …")
	}
	text := string(piece.Data)
	for {
		line, rest, found := strings.Cut(text, "\n")
		b := l.open[piece.Stream]
		if b == nil {
			b = &strings.Builder{}
			l.open[piece.Stream] = b
		}
		if room := lineLimit - b.Len(); len(line) > room {
			line = line[:max(room, 0)]
		}
		b.WriteString(line)
		if !found {
			return
		}
		l.line(piece.Stream, b.String())
		b.Reset()
		text = rest
	}
}

// end adds lines that have no end yet.
func (l *logView) end() {
	for _, stream := range []string{"stdout", "stderr", ""} {
		if b := l.open[stream]; b != nil && b.Len() > 0 {
			l.line(stream, b.String())
		}
	}
	l.open = nil
}

func (l *logView) line(stream, text string) {
	if len(l.Lines) >= 2*logLines {
		l.Skipped += len(l.Lines) - logLines
		l.Lines = append([]logLine(nil), l.Lines[len(l.Lines)-logLines:]...)
	}
	parts, style := colours(strings.TrimSuffix(text, "\r"), l.style[stream])
	l.style[stream] = style
	l.Lines = append(l.Lines, logLine{Number: l.Skipped + len(l.Lines) + 1, Stream: stream, Parts: parts})
}

// Last returns the last n lines as text.
func (l *logView) Last(n int) string {
	var b strings.Builder
	for _, line := range l.Lines[max(0, len(l.Lines)-n):] {
		for _, p := range line.Parts {
			b.WriteString(p.Text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Shown returns the lines of the page.
func (l *logView) Shown() []logLine { return l.Lines[max(0, len(l.Lines)-logLines):] }

// Before returns the number of lines before the shown ones.
func (l *logView) Before() int { return l.Skipped + len(l.Lines) - len(l.Shown()) }

// part is a piece of a line with one look. Class is a class of style.css, or empty.
type part struct{ Class, Text string }

// colours splits a line at its ANSI colours. Other escape sequences are left out. style is the
// look at the start of the line; the returned one is that at its end.
func colours(text, style string) (parts []part, after string) {
	for {
		before, rest, found := strings.Cut(text, "\x1b")
		if before != "" {
			parts = append(parts, part{style, visible(before)})
		}
		if !found {
			return parts, style
		}
		switch {
		case strings.HasPrefix(rest, "["):
			end := strings.IndexFunc(rest[1:], func(c rune) bool { return c >= '@' && c <= '~' })
			if end < 0 {
				return parts, style
			}
			if rest[1+end] == 'm' {
				style = restyled(style, rest[1:1+end])
			}
			text = rest[end+2:]
		case strings.HasPrefix(rest, "]"): // a title or a link, up to BEL or ESC \
			end := strings.IndexAny(rest, "\a\x1b")
			if end < 0 {
				return parts, style
			}
			text = strings.TrimPrefix(rest[end+1:], "\\")
		default:
			text = rest[min(len(rest), 1):]
		}
	}
}

var ansiColours = []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// restyled returns the look after a sequence of numbers for colours.
func restyled(style, numbers string) string {
	colour, bold := strings.TrimSuffix(style, " a-bold"), strings.HasSuffix(style, "a-bold")
	if colour == "a-bold" {
		colour = ""
	}
	for n := range strings.SplitSeq(numbers, ";") {
		switch {
		case n == "" || n == "0":
			colour, bold = "", false
		case n == "1":
			bold = true
		case n == "22":
			bold = false
		case n == "39":
			colour = ""
		case len(n) == 2 && (n[0] == '3' || n[0] == '9') && n[1] >= '0' && n[1] <= '7':
			colour = "a-" + ansiColours[n[1]-'0']
		case n == "38" || n == "48":
			return join(colour, bold) // colours by number are left out
		}
	}
	return join(colour, bold)
}

func join(colour string, bold bool) string {
	if bold {
		return strings.TrimPrefix(colour+" a-bold", " ")
	}
	return colour
}
