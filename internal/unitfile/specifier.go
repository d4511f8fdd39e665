package unitfile

import "strings"

// expansion is a text with its specifiers replaced.
type expansion struct {
	text string
	// replaced: a specifier other than %% was there.
	replaced bool
	// inexact: one of them depends on the running host and stands in text as written.
	inexact bool
	// unknown: a letter or digit that no systemd takes as a specifier, or not every one.
	unknown bool
}

// hostSpecifiers depend on the machine, its users or the unit's cgroup, or differ between versions
// (systemd.unit(5), "Specifiers").
const hostSpecifiers = "aAbBcdDfFHlmMoqrRvwWyYgGuUhs"

// expand replaces the specifiers of a unit of the system manager (specifier.c, unit-printf.c). A
// percent sign before anything but a letter, a digit or another one stands for itself.
func expand(unit, text string) expansion {
	var x expansion
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		c := text[i]
		value, known := unitSpecifier(unit, c)
		switch {
		case c == '%':
			b.WriteByte('%')
		case known:
			x.replaced = true
			b.WriteString(value)
		case strings.IndexByte(hostSpecifiers, c) >= 0:
			x.replaced, x.inexact = true, true
			b.WriteString(text[i-1 : i+1])
		case isAlphanumeric(c):
			x.unknown = true
		default:
			b.WriteString(text[i-1 : i+1])
		}
	}
	x.text = b.String()
	return x
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// unitSpecifier returns what is the same on every host for one unit of the system manager.
func unitSpecifier(unit string, c byte) (value string, known bool) {
	name := unit
	if dot := strings.LastIndexByte(unit, '.'); dot >= 0 {
		name = unit[:dot]
	}
	prefix, instance, _ := strings.Cut(name, "@")
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	switch c {
	case 'n':
		return unit, true
	case 'N':
		return name, true
	case 'p':
		return prefix, true
	case 'i':
		return instance, true
	case 'j':
		return last, true
	case 't':
		return "/run", true
	case 'S':
		return "/var/lib", true
	case 'C':
		return "/var/cache", true
	case 'L':
		return "/var/log", true
	case 'E':
		return "/etc", true
	case 'T':
		return "/tmp", true
	case 'V':
		return "/var/tmp", true
	case 'P', 'I', 'J':
		// The unescaped forms, which are the same unless the name holds an escape.
		plain := map[byte]string{'P': prefix, 'I': instance, 'J': last}[c]
		return strings.ReplaceAll(plain, "-", "/"), !strings.Contains(plain, `\x`)
	}
	return "", false
}
