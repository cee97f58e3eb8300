package config

import (
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A collector is named by address; anything else is a mistake, reported with its line.
func TestTraces(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:4318":           "http://127.0.0.1:4318/v1/traces",
		"http://[::1]:4318/otlp/v1/trace": "http://[::1]:4318/otlp/v1/trace",
		"https://127.0.0.1:4318":          "", "http://collector:4318": "", "http://127.0.0.1": "", "http://u:p@127.0.0.1:4318": "", "http://127.0.0.1:4318/?a=b": "", "x": "",
	} {
		got, err := collector(text)
		check.Equal(t, text, got, want)
		check.True(t, text+": a mistake is said", (err == nil) == (want != "") && (want != "" || strings.Contains(err.Error(), "by address")))
	}
}
