package console

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// utcTime returns the time of day in UTC, for a time that is shown in a zone. It is empty if the
// zone has the same time.
func utcTime(at time.Time, zone string) string {
	if _, offset := at.In(zoneOf(zone)).Zone(); offset == 0 {
		return ""
	}
	return at.UTC().Format("15:04 UTC")
}

// May reports whether the reader has a scope.
func (l *layout) May(s access.Scope) bool { return l.may != nil && l.may(s) }

// look is how a state is shown: by its word, its colour (Class) and the shape of its icon.
type look struct {
	Word, Class, Icon string
	// Busy: the state is expected to end by itself.
	Busy bool
}

// looks maps each state of a run to its look.
var looks = map[run.State]look{
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

// stateOf returns the look of a state. A skipped run has a look of its own.
func stateOf(state string, skipped bool) look {
	if skipped {
		return look{Word: "Skipped", Class: "off", Icon: "skip"}
	}
	l, ok := looks[run.State(state)]
	if !ok {
		l = look{Class: "off", Icon: "question"}
	}
	l.Word = state
	return l
}

// moment is a time as pages show it: relative, with the exact time in UTC.
type moment struct{ Text, Exact, ISO string }

// exactTime is the form of an exact time in UTC.
const exactTime = "2006-01-02 15:04:05.000 UTC"

func when(at, now time.Time) moment {
	if at.IsZero() {
		return moment{}
	}
	at = at.UTC()
	m := moment{Exact: at.Format(exactTime), ISO: at.Format(time.RFC3339Nano)}
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

// duration returns a duration in its two largest units.
func duration(d time.Duration) string {
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

// seconds returns a duration in seconds as duration does.
func seconds(s float64) string { return duration(time.Duration(s * float64(time.Second))) }

// size returns a number of bytes in the largest binary unit.
func size(n int64) string {
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

// visible returns a text of a client or a worker for a page: characters that change the
// direction or the position of others are marks, escape sequences are left out, and a long text is
// cut.
func visible(text string) string {
	text = unescaped(text)
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

// short returns at most n characters of a visible text on one line.
func short(n int, text string) string {
	text = visible(text[:min(len(text), 8*n)])
	text = strings.Join(strings.Fields(text), " ")
	if cut := []rune(text); len(cut) > n {
		return string(cut[:n-1]) + "…"
	}
	return text
}

// plain returns the text that v points to, or v as a text.
func plain(v any) string {
	if v == nil {
		return ""
	}
	return visible(strings.Trim(fmt.Sprintf("%v", v), "\n"))
}

// quoted returns an argument of a command for a shell.
func quoted(argument string) string {
	safe := func(c rune) bool {
		return unicode.IsLetter(c) && c < 0x80 || unicode.IsDigit(c) && c < 0x80 || strings.ContainsRune("-_.:/=,@+", c)
	}
	if argument != "" && strings.IndexFunc(argument, func(c rune) bool { return !safe(c) }) < 0 {
		return argument
	}
	return "'" + strings.ReplaceAll(visible(argument), "'", `'\''`) + "'"
}

// command returns the command line of sortie with arguments.
func command(arguments ...string) string {
	line := "sortie"
	for _, a := range arguments {
		line += " " + quoted(a)
	}
	return line
}

// address returns a path with a query.
func address(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
