package setting

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Text returns a setting that accepts any text.
func Text(to *string, name, fallback, meaning string) Setting {
	return Func(name, fallback, meaning, func(text string) error {
		*to = text
		return nil
	})
}

// Pattern returns a setting that accepts an empty text or one that matches the pattern.
func Pattern(to *string, name, fallback, meaning string, pattern *regexp.Regexp) Setting {
	return Func(name, fallback, meaning, func(text string) error {
		if text != "" && !pattern.MatchString(text) {
			return fmt.Errorf("%q does not match %s", text, pattern)
		}
		*to = text
		return nil
	})
}

// OneOf returns a setting that accepts one of the choices or fallback.
func OneOf(to *string, name, fallback, meaning string, choices ...string) Setting {
	return Func(name, fallback, meaning, func(text string) error {
		if text != fallback && !slices.Contains(choices, text) {
			return fmt.Errorf("%q is unknown, want one of %s", text, strings.Join(choices, ", "))
		}
		*to = text
		return nil
	})
}

// Bool returns a setting that accepts the values of strconv.ParseBool, such as true and false.
func Bool(to *bool, name, fallback, meaning string) Setting {
	return Func(name, fallback, meaning, func(text string) error {
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not a truth value, want true or false", text)
		}
		*to = value
		return nil
	})
}

// Integer returns a setting that accepts a whole number from least to most.
func Integer(to *int, name, fallback, meaning string, least, most int) Setting {
	return Func(name, fallback, meaning, func(text string) (err error) {
		*to, err = ParseInteger(text, least, most)
		return err
	})
}

// ParseInteger parses a whole number from least to most.
func ParseInteger(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%q is not a whole number, want %d to %d", text, least, most)
	case err != nil || n < least || n > most:
		return 0, fmt.Errorf("%s is out of range, want %d to %d", text, least, most)
	}
	return n, nil
}

// Bytes returns a setting that accepts a number of bytes, 0 or more, without a unit.
func Bytes(to *int64, name, fallback, meaning string) Setting {
	return Func(name, fallback, meaning, func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number of bytes, want one such as 8388608", text)
		}
		*to = n
		return nil
	})
}

// Duration returns a setting that accepts a duration of whole seconds from least to most, such
// as 90s or 1h.
func Duration(to *time.Duration, name, fallback, meaning string, least, most time.Duration) Setting {
	return Func(name, fallback, meaning, func(text string) error {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil || d%time.Second != 0:
			return fmt.Errorf("%q is not a duration of whole seconds, want one such as 90s, from %s to %s", text, least, most)
		case d < least || d > most:
			return fmt.Errorf("%s is out of range, want %s to %s", text, least, most)
		}
		*to = d
		return nil
	})
}

// URL returns a setting that accepts an empty text or a URL that IsURL accepts. It removes
// slashes at the end.
func URL(to *string, name, fallback, meaning string) Setting {
	return Func(name, fallback, meaning, func(text string) error {
		if text != "" && !IsURL(text) {
			return fmt.Errorf("%q is not an http or https URL without user, query and fragment, want one such as https://sortie.example.org", text)
		}
		*to = strings.TrimRight(text, "/")
		return nil
	})
}

// IsURL reports whether the text is an http or https URL without user, query and
// fragment.
func IsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// List returns a setting that accepts the lists of ParseList: distinct values, separated by
// commas, or an empty text.
func List(to *[]string, name, fallback, meaning string) Setting {
	return Func(name, fallback, meaning, func(text string) (err error) {
		*to, err = ParseList(text)
		return err
	})
}

// ParseList splits a text at its commas and removes the space around each value. It returns an
// error for an empty or repeated value, and nil for an empty text.
func ParseList(text string) ([]string, error) {
	var list []string
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		switch part = strings.TrimSpace(part); {
		case part == "":
			return nil, fmt.Errorf("%q has an empty value, want values with commas between them", text)
		case slices.Contains(list, part):
			return nil, fmt.Errorf("%q occurs twice", part)
		}
		list = append(list, part)
	}
	return list, nil
}
