package console

import (
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// logView is a part of a log as the page of a run shows it: the end, the lines around one, or
// those that a filter selects.
type logView struct {
	// Path is the path of the whole log in the API.
	Path    string
	Attempt int
	Ended   bool
	Filter  logFilter
	// Total is the number of lines, Matches that of the lines that the filter selects. Errors and
	// Warnings count the lines of these levels.
	Total, Matches, Errors, Warnings int

	tail, found []logLine
	// each is called for every line in place of storing it; nil stores them.
	each  func(logLine)
	open  map[string]*openLine
	style map[string]string
}

// logFilter selects lines of a log.
type logFilter struct {
	Text, Stream string
	// Level is the least level; 0 is any.
	Level level
	// Line is the line that the page shows, or the first one that the filter may select; 0 is
	// the end of the log, or its first line.
	Line int
}

// Searches reports whether the filter selects lines by their content.
func (f logFilter) Searches() bool { return f.Text != "" || f.Stream != "" || f.Level != 0 }

// selects reports whether the content of a line matches.
func (f logFilter) selects(line logLine) bool {
	return line.Level >= f.Level && (f.Stream == "" || f.Stream == line.Stream) &&
		(f.Text == "" || strings.Contains(strings.ToLower(ui.Unescaped(line.text)), strings.ToLower(f.Text)))
}

// logLine is a line of a log.
type logLine struct {
	Number int
	Stream string
	Level  level
	// At is the time at which the line began; zero if unknown.
	At   time.Time
	text string
	// style is the look at the start of the text.
	style string
}

// Parts returns the pieces of the line.
func (l logLine) Parts() []ui.Piece {
	parts, _ := ui.Colours(l.text, l.style)
	return parts
}

// A page shows at most logLines lines, and lines of together at most logBytes. Around a line it
// shows logContext lines before it.
const (
	logLines   = 300
	logBytes   = 48 << 10
	logContext = 50
)

// lineLimit is the largest size of a line in bytes. The rest is left out.
const lineLimit = 16 << 10

// openLine is a line without its end.
type openLine struct {
	text strings.Builder
	at   time.Time
}

// add adds a piece of output. Lines of different streams do not mix.
func (l *logView) add(piece contract.LogLine) {
	if l.open == nil {
		l.open, l.style = map[string]*openLine{}, map[string]string{}
	}
	if piece.Cut > 0 {
		l.line(piece.Stream, "… "+ui.Size(piece.Cut)+" are missing here …", piece.At)
	}
	text := string(piece.Data)
	for {
		line, rest, found := strings.Cut(text, "\n")
		b := l.open[piece.Stream]
		if b == nil {
			b = &openLine{}
			l.open[piece.Stream] = b
		}
		if b.text.Len() == 0 {
			b.at = piece.At
		}
		if room := lineLimit - b.text.Len(); len(line) > room {
			line = line[:max(room, 0)]
		}
		b.text.WriteString(line)
		if !found {
			return
		}
		l.line(piece.Stream, b.text.String(), b.at)
		b.text.Reset()
		text = rest
	}
}

// end adds lines that have no end yet.
func (l *logView) end() {
	for _, stream := range []string{"stdout", "stderr", ""} {
		if b := l.open[stream]; b != nil && b.text.Len() > 0 {
			l.line(stream, b.text.String(), b.at)
		}
	}
	l.open = nil
}

func (l *logView) line(stream, text string, at time.Time) {
	l.Total++
	line := logLine{
		Number: l.Total, Stream: stream, Level: levelOf(ui.Unescaped(text[:min(len(text), 2*levelWithin)])), At: at,
		text: strings.TrimSuffix(text, "\r"), style: l.style[stream],
	}
	if strings.Contains(text, "\x1b") {
		_, l.style[stream] = ui.Colours(text, line.style)
	}
	if l.each != nil {
		l.each(line)
		return
	}
	switch line.Level {
	case levelError:
		l.Errors++
	case levelWarn:
		l.Warnings++
	}
	if l.tail = append(l.tail, line); len(l.tail) >= 2*logLines {
		l.tail = slices.Clone(l.tail[len(l.tail)-logLines:])
	}
	switch f := l.Filter; {
	case f.Searches():
		if f.selects(line) {
			if l.Matches++; line.Number >= f.Line && len(l.found) < logLines {
				l.found = append(l.found, line)
			}
		}
	case line.Number >= f.Line-logContext && line.Number < f.Line-logContext+logLines:
		l.found = append(l.found, line)
	}
}

// lastLine is the number of bytes of a line that Last returns.
const lastLine = 500

// Last returns the last n lines as text.
func (l *logView) Last(n int) string {
	var b strings.Builder
	for _, line := range l.tail[max(0, len(l.tail)-n):] {
		b.WriteString(ui.Visible(line.text[:min(len(line.text), lastLine)]) + "\n")
	}
	return b.String()
}

// Following reports whether the page shows the end of the log, which can grow.
func (l *logView) Following() bool { return l.Filter.Line == 0 && !l.Filter.Searches() }

// Shown returns the lines of the page.
func (l *logView) Shown() []logLine {
	if !l.Following() {
		at := slices.IndexFunc(l.found, func(line logLine) bool { return line.Number >= l.Filter.Line })
		before := fitting(l.found[:max(at, 0)], logBytes/4, true)
		return append(before, fitting(l.found[max(at, 0):], logBytes, false)...)
	}
	return fitting(l.tail[max(0, len(l.tail)-logLines):], logBytes, true)
}

// fitting returns the first or the last lines that together have at most so many bytes, at least
// one.
func fitting(lines []logLine, bytes int, last bool) []logLine {
	for n := range lines {
		i := ui.Choose(last, len(lines)-1-n, n)
		if bytes -= len(lines[i].text); bytes < 0 && n > 0 {
			return ui.Choose(last, lines[i+1:], lines[:i])
		}
	}
	return slices.Clone(lines)
}
