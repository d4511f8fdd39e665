import java.net.HttpURLConnection;
import java.net.URI;

class Get {
    public static void main(String[] urls) {
        for (String url : urls) {
            try {
                HttpURLConnection c = (HttpURLConnection) URI.create(url).toURL().openConnection();
                c.setConnectTimeout(3000);
                c.setReadTimeout(3000);
                c.getResponseCode();
            } catch (Exception e) {
                // whether it reached the proxy is seen there
            }
        }
    }
}
