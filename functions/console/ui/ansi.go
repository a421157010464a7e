package ui

import "strings"

// Piece is a piece of a line with one look. Class is a class of style.css, or empty.
type Piece struct{ Class, Text string }

// Colours splits a line at its ANSI colours. Other escape sequences are left out. style is the
// look at the start of the line; the returned one is that at its end.
func Colours(text, style string) (parts []Piece, after string) {
	for {
		before, rest, found := strings.Cut(text, "\x1b")
		if before != "" {
			parts = append(parts, Piece{style, Visible(before)})
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

// Unescaped returns a line without its escape sequences.
func Unescaped(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	var b strings.Builder
	parts, _ := Colours(text, "")
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
