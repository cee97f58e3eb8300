package aldis.peer;

import java.lang.reflect.Field;
import java.lang.reflect.Method;

/**
 * Both libraries compare their "JRE1.x" with the specification version of package java.lang, which is empty since Java 9,
 * and then find no module they could load. This gives the package a version again; the libraries stay as they are.
 * Needs java.base/java.lang to be opened (the jar's manifest does it).
 */
final class JavaVersionFix {
    private JavaVersionFix() {
    }

    static void apply(String version) throws ReflectiveOperationException {
        Package lang = Object.class.getPackage();
        Class<?> info = Class.forName("java.lang.Package$VersionInfo");
        Method make = info.getDeclaredMethod("getInstance", String.class, String.class, String.class, String.class,
                String.class, String.class, java.net.URL.class);
        make.setAccessible(true);
        Field field = Package.class.getDeclaredField("versionInfo");
        field.setAccessible(true);
        field.set(lang, make.invoke(null, "Java Platform API Specification", version, null, null, null, null, null));
    }
}
