package jxta.security.cipher;

/** Stand-in for the lost jxta.security. */
public interface Key {
}
