package access

import (
	"fmt"
	"strings"
)

// ParseTexts parses AUTH_TOKEN: one token, or several that are separated by
// commas. Spaces around a token are ignored. An empty value has no tokens.
func ParseTexts(value string) ([]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	var texts []string
	for part := range strings.SplitSeq(value, ",") {
		text := strings.TrimSpace(part)
		if err := CheckText(text); err != nil {
			return nil, fmt.Errorf("AUTH_TOKEN: token %d: %w", len(texts)+1, err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// OfTexts returns records with the scopes of Ordinary for tokens whose texts are known.
func OfTexts(texts []string, tenant, project string) []Token {
	tokens := make([]Token, len(texts))
	for i, text := range texts {
		tokens[i] = Full(fmt.Sprintf("auth-token-%d", i+1), text, tenant, project)
		tokens[i].Scopes = Ordinary()
	}
	return tokens
}
