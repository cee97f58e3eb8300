package jxta.security.exceptions;

/** Stand-in for the lost jxta.security. */
public class CryptoException extends Exception {
    public CryptoException(String text) {
        super(text);
    }
}
