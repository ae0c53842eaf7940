package program

import (
	"fmt"
	"strings"
)

const space = " \t\n\r"

// splitFlags gives the flags of GOFLAGS. They are separated by space; one that contains space stands whole in single or
// double quotes, within which nothing is escaped.
func splitFlags(text string) ([]string, error) {
	var flags []string
	for {
		text = strings.TrimLeft(text, space)
		if text == "" {
			return flags, nil
		}
		var flag string
		if quote := text[0]; quote == '"' || quote == '\'' {
			end := strings.IndexByte(text[1:], quote)
			if end < 0 {
				return nil, fmt.Errorf("GOFLAGS: %s has no closing %c", text, quote)
			}
			flag, text = text[1:1+end], text[end+2:]
		} else if end := strings.IndexAny(text, space); end >= 0 {
			flag, text = text[:end], text[end:]
		} else {
			flag, text = text, ""
		}
		flags = append(flags, flag)
	}
}

// joinFlags is the text that splitFlags gives the flags of. A flag with both kinds of quotes cannot be written.
func joinFlags(flags []string) (string, error) {
	words := make([]string, len(flags))
	for i, flag := range flags {
		switch {
		case flag != "" && !strings.ContainsAny(flag, space+`'"`):
			words[i] = flag
		case !strings.Contains(flag, "'"):
			words[i] = "'" + flag + "'"
		case !strings.Contains(flag, `"`):
			words[i] = `"` + flag + `"`
		default:
			return "", fmt.Errorf("GOFLAGS: %s has both kinds of quotes", flag)
		}
	}
	return strings.Join(words, " "), nil
}

// InWorkspace is GOFLAGS without -mod and -modfile, which conflict with the workspace that cells are compiled in.
// GOFLAGS that cannot be read stay as they are, for the go command to say what is wrong.
func InWorkspace(text string) string {
	return changeFlags(text, func(flags []string) []string {
		var kept []string
		for _, flag := range flags {
			if name, _ := flagNamed(flag); name != "mod" && name != "modfile" {
				kept = append(kept, flag)
			}
		}
		return kept
	})
}

// Linking is GOFLAGS with flags for the linker, before the user's own, so that these win. GOFLAGS that cannot be read
// stay as they are.
func Linking(text, linker string) string {
	return changeFlags(text, func(flags []string) []string {
		kept := []string{""} // the flag for all packages comes first, and those for packages of a pattern after it
		own := ""
		for _, flag := range flags {
			name, value := flagNamed(flag)
			if name == "ldflags" && (value == "" || strings.HasPrefix(value, "-")) {
				own = value // of several the last wins
				continue
			}
			kept = append(kept, flag)
		}
		kept[0] = strings.TrimRight("-ldflags="+linker+" "+own, " ")
		return kept
	})
}

// flagNamed is a flag's name without dashes, and its value.
func flagNamed(flag string) (name, value string) {
	name, value, _ = strings.Cut(strings.TrimLeft(flag, "-"), "=")
	return name, value
}

func changeFlags(text string, by func([]string) []string) string {
	flags, err := splitFlags(text)
	if err != nil {
		return text
	}
	changed, err := joinFlags(by(flags))
	if err != nil {
		return text
	}
	return changed
}
