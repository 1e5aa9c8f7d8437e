// Package redelivertest
package redelivertest
