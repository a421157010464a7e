package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Look is how a state is shown: by its word, its colour (Class) and the shape of its icon.
type Look struct {
	Word, Class, Icon string
	// Busy: the state is expected to end by itself.
	Busy bool
}

// looks maps each state of a run to its look.
var looks = map[run.State]Look{
	run.PreRun:            {Class: "wait", Icon: "clock", Busy: true},
	run.Pending:           {Class: "wait", Icon: "clock", Busy: true},
	run.ConditionPending:  {Class: "wait", Icon: "clock", Busy: true},
	run.ConditionRunning:  {Class: "wait", Icon: "check-list", Busy: true},
	run.ActionPending:     {Class: "wait", Icon: "clock", Busy: true},
	run.ActionRunning:     {Class: "wait", Icon: "check-list", Busy: true},
	run.ContainerCreating: {Class: "start", Icon: "half", Busy: true},
	run.Running:           {Class: "run", Icon: "play", Busy: true},
	run.Terminating:       {Class: "run", Icon: "stop", Busy: true},
	run.Retrying:          {Class: "retry", Icon: "again", Busy: true},
	run.Completed:         {Class: "good", Icon: "check"},
	run.Failed:            {Class: "bad", Icon: "cross"},
	run.Cancelled:         {Class: "off", Icon: "slash"},
	run.Orphaned:          {Class: "bad", Icon: "question"},
}

// StateOf returns the look of a state. A skipped run has a look of its own.
func StateOf(state string, skipped bool) Look {
	if skipped {
		return Look{Word: "Skipped", Class: "off", Icon: "skip"}
	}
	l, ok := looks[run.State(state)]
	if !ok {
		l = Look{Class: "off", Icon: "question"}
	}
	l.Word = state
	return l
}

// moment is a time as pages show it: relative, with the exact time in UTC.
type moment struct{ Text, Exact, ISO string }

// ExactTime is the form of an exact time in UTC.
const ExactTime = "2006-01-02 15:04:05.000 UTC"

func when(at, now time.Time) moment {
	if at.IsZero() {
		return moment{}
	}
	at = at.UTC()
	m := moment{Exact: at.Format(ExactTime), ISO: at.Format(time.RFC3339Nano)}
	d := now.Sub(at)
	switch {
	case d < -time.Second:
		m.Text = "in " + coarse(-d)
	case d < 2*time.Second:
		m.Text = "now"
	default:
		m.Text = coarse(d) + " ago"
	}
	return m
}

// coarse returns a duration in its largest unit.
func coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// Duration returns a duration in its two largest units.
func Duration(d time.Duration) string {
	switch d = max(d, 0); {
	case d == 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours()/24), int(d.Hours())%24)
}

// Seconds returns a duration in seconds as duration does.
func Seconds(s float64) string { return Duration(time.Duration(s * float64(time.Second))) }

// Size returns a number of bytes in the largest binary unit.
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value /= 1024; value < 1024 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// shownLimit is the largest number of characters of a text of a client or a worker that a page
// shows.
const shownLimit = 16 << 10

// Visible returns a text of a client or a worker for a page: characters that change the
// direction or the position of others are marks, escape sequences are left out, and a long text is
// cut.
func Visible(text string) string {
	text = Unescaped(text)
	var b strings.Builder
	shown := 0
	for _, c := range text {
		if shown++; shown > shownLimit {
			fmt.Fprintf(&b, "… (%d more bytes)", len(text)-b.Len())
			break
		}
		switch {
		case c == '\n' || c == '\t':
			b.WriteRune(c)
		case c < ' ':
			b.WriteRune('␀' + c) // the symbol of the control character
		case c == 0x7f:
			b.WriteRune('␡')
		case unicode.Is(unicode.Cc, c) || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029':
			fmt.Fprintf(&b, "⟨U+%04X⟩", c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Short returns at most n characters of a visible text on one line.
func Short(n int, text string) string {
	text = Visible(text[:min(len(text), 8*n)])
	text = strings.Join(strings.Fields(text), " ")
	if cut := []rune(text); len(cut) > n {
		return string(cut[:n-1]) + "…"
	}
	return text
}

// Plain returns the text that v points to, or v as a text.
func Plain(v any) string {
	if v == nil {
		return ""
	}
	return Visible(strings.Trim(fmt.Sprintf("%v", v), "\n"))
}

// Quoted returns an argument of a command for a shell.
func Quoted(argument string) string {
	safe := func(c rune) bool {
		return unicode.IsLetter(c) && c < 0x80 || unicode.IsDigit(c) && c < 0x80 || strings.ContainsRune("-_.:/=,@+", c)
	}
	if argument != "" && strings.IndexFunc(argument, func(c rune) bool { return !safe(c) }) < 0 {
		return argument
	}
	return "'" + strings.ReplaceAll(Visible(argument), "'", `'\''`) + "'"
}

// Command returns the command line of sortie with arguments.
func Command(arguments ...string) string {
	line := "sortie"
	for _, a := range arguments {
		line += " " + Quoted(a)
	}
	return line
}

// WithQuery returns a path with a query.
func WithQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// FormTime is the format of a time in a form, in UTC.
const FormTime = "2006-01-02T15:04"

// Indented returns JSON with a line for each member.
func Indented(document []byte) string {
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", "  "); err != nil {
		return Visible(fmt.Sprintf("%q", document))
	}
	return Visible(text.String())
}
