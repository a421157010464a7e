package console

import "strings"

// level is the level of a line of a log; 0 if the line names none.
type level int

// The levels, from the least.
const (
	levelDebug level = iota + 1
	levelInfo
	levelWarn
	levelError
)

// levelNames are the values of the query parameter level, in the order of the form.
var levelNames = []levelName{{"error", "errors", levelError}, {"warn", "warnings and errors", levelWarn}, {"info", "info and above", levelInfo}}

// levelName is a level, its name in a query and its text in a form.
type levelName struct {
	Name, Text string
	Level      level
}

// name returns the name of the level in a query.
func (l level) name() string {
	for _, known := range levelNames {
		if known.Level == l {
			return known.Name
		}
	}
	return ""
}

var levelWords = map[string]level{
	"TRACE": levelDebug, "DEBUG": levelDebug, "INFO": levelInfo, "NOTICE": levelInfo, "WARN": levelWarn, "WARNING": levelWarn,
	"ERR": levelError, "ERROR": levelError, "FATAL": levelError, "CRITICAL": levelError, "PANIC": levelError,
}

// levelWithin is the number of bytes at the start of a line in which its level is expected.
const levelWithin = 160

// levelOf returns the level that a line names: a word in capital letters, as in "ERROR disk", or
// one that a sign marks as a level, as in "error: disk", "level=error" and "[error]".
func levelOf(text string) level {
	text = text[:min(len(text), levelWithin)]
	for start := 0; start < len(text); {
		end := start
		for end < len(text) && letter(text[end]) {
			end++
		}
		marked := start > 0 && strings.IndexByte(`="[<(`, text[start-1]) >= 0 || end < len(text) && strings.IndexByte(`:]>`, text[end]) >= 0
		found := levelWords[text[start:end]]
		if found == 0 && marked {
			found = levelWords[strings.ToUpper(text[start:end])]
		}
		if found != 0 {
			return found
		}
		start = end + 1
	}
	return 0
}

// letter reports whether a character is part of a word.
func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
