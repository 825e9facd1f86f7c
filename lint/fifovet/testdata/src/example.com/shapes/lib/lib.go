// Package lib makes random texts. // want package:"reach"
package lib

import "math/rand"

const letters = "abcdefghijklmnopqrstuvwxyz"

func String(n int) string { // want String:"nondet"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.Intn(len(letters))]
	}
	return string(b)
}
