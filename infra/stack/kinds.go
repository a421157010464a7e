package stack

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func matching(key, fallback, meaning string, pattern *regexp.Regexp, at func(*Settings) *string) setting {
	return setting{Setting{key, fallback, meaning}, func(s *Settings, text string) error {
		if text != "" && !pattern.MatchString(text) {
			return fmt.Errorf("%q has to match %s", text, pattern)
		}
		*at(s) = text
		return nil
	}}
}

func oneOf(key, fallback, meaning string, at func(*Settings) *string, choices ...string) setting {
	return setting{Setting{key, fallback, meaning}, func(s *Settings, text string) error {
		if !slices.Contains(choices, text) {
			return fmt.Errorf("%q has to be one of %s", text, strings.Join(choices, ", "))
		}
		*at(s) = text
		return nil
	}}
}

func truth(key, fallback, meaning string, at func(*Settings) *bool) setting {
	return setting{Setting{key, fallback, meaning}, func(s *Settings, text string) error {
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q has to be true or false", text)
		}
		*at(s) = value
		return nil
	}}
}

func number(key, fallback, meaning string, at func(*Settings) *int, choices ...int) setting {
	return setting{Setting{key, fallback, meaning}, func(s *Settings, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || !slices.Contains(choices, n) {
			return fmt.Errorf("%q has to be one of %v", text, choices)
		}
		*at(s) = n
		return nil
	}}
}

func within(key, fallback, meaning string, least, most int, at func(*Settings) *int) setting {
	return setting{Setting{key, fallback, meaning}, func(s *Settings, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q has to be a whole number from %d to %d", text, least, most)
		}
		*at(s) = n
		return nil
	}}
}

func address(key, meaning string, at func(*Settings) *string) setting {
	return setting{Setting{key, "", meaning}, func(s *Settings, text string) error {
		if text != "" && !isURL(text) {
			return fmt.Errorf("%q has to be an http or https URL", text)
		}
		*at(s) = strings.TrimRight(text, "/")
		return nil
	}}
}

func list(key, fallback, meaning string, at func(*Settings) *[]string) setting {
	return setting{Setting{key, fallback, meaning}, func(s *Settings, text string) error {
		*at(s) = nil
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			if slices.Contains(*at(s), part) {
				return fmt.Errorf("%q stands there twice", part)
			}
			*at(s) = append(*at(s), part)
		}
		return nil
	}}
}

// perFunction reads "name=number,...", the names being those of functions.
func perFunction(key, fallback, meaning string, least, most int, at func(*Settings) *map[string]int) setting {
	return setting{Setting{key, fallback, meaning}, func(s *Settings, text string) error {
		*at(s) = map[string]int{}
		var problems []error
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			name, value, _ := strings.Cut(part, "=")
			n, err := strconv.Atoi(value)
			switch {
			case !slices.Contains(Functions(), name):
				problems = append(problems, fmt.Errorf("there is no function %q", name))
			case err != nil || n < least || n > most:
				problems = append(problems, fmt.Errorf("%q has to be a whole number from %d to %d", part, least, most))
			}
			(*at(s))[name] = n
		}
		return errors.Join(problems...)
	}}
}

func readOutputs(s *Settings, text string) error {
	s.Outputs = OutputsKind(text)
	if s.Outputs != R2 && s.Outputs != S3 {
		return fmt.Errorf("%q has to be %s or %s", text, R2, S3)
	}
	return nil
}

func readLocalStack(s *Settings, text string) error {
	switch {
	case text == "true":
		s.LocalStack = localURL
	case text == "false":
		s.LocalStack = ""
	case isURL(text):
		s.LocalStack = strings.TrimRight(text, "/")
	default:
		return fmt.Errorf("%q has to be true, false or a URL", text)
	}
	return nil
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.User == nil
}
